// The messages of a chat, checked and brought into the one shape that chat templates see.
#pragma once

#include <string>
#include <vector>

#include "json/read_json.h"
#include "linnet/status.h"
#include "linnet/text_engine.h"

namespace linnet::api {

// `messages`: the request's field. `prompt` gets an array of objects with role (developer is system), content (always
// a string: text parts joined, null and absent as "") and, where given, name, reasoning_content, tool_call_id and tool_calls
// (their arguments as an object where they hold one, which is what templates expect). Fields that are not among these are dropped
// and added to `ignored` as "messages[].field". Errors name the message and the field.
Status read_messages(const Json& messages, ChatPrompt& prompt, std::vector<std::string>& ignored);

}  // namespace linnet::api
