// Anthropic's messages and system prompt in the shape that chat templates see.
#pragma once

#include <string>
#include <vector>

#include "json/read_json.h"
#include "linnet/status.h"
#include "linnet/text_engine.h"

namespace linnet::api {

// `system`: the request's field, null if absent. Unknown fields join `ignored`. Errors name message, block and field.
Status read_anthropic_messages(const Json& messages, const Json* system, ChatPrompt& prompt, std::vector<std::string>& ignored);

}  // namespace linnet::api
