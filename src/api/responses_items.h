// The items of /v1/responses as messages for chat templates.
#pragma once

#include <string>
#include <vector>

#include "json/read_json.h"
#include "linnet/status.h"

namespace linnet::api {

// Appends the messages that `items` (an array) stand for to `messages`. What an assistant says, thinks and calls without another
// item between is one message. Unknown fields join `ignored`. `path`: of the array, as errors call it.
Status append_items(const Json& items, const std::string& path, Json& messages, std::vector<std::string>& ignored);

}  // namespace linnet::api
