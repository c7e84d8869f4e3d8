// The one shape of a conversation that chat templates see, whichever protocol it came by.
#pragma once

#include <string>

#include "json/read_json.h"
#include "linnet/text_engine.h"

namespace linnet::api {

// A tool call of an assistant message. An empty `id` is left out.
Json tool_call(std::string id, std::string name, Json arguments);

// The object that `arguments` holds as text, which is what templates expect, or the text itself if it holds none.
Json read_arguments(std::string arguments);

// `messages`: an array of {"role": system, user, assistant or tool, "content": text, ...}. Sets the prompt's messages, and what
// is tried when the template refuses them, in this order:
//   1. All system messages as one at the beginning, in their order; neighbours of user or assistant as one message each; texts
//      joined by an empty line.
//   2. The same with the system text at the beginning of the first user message.
void set_messages(const Json& messages, ChatPrompt& prompt);

}  // namespace linnet::api
