// One text request from its bytes to the last byte of its answer, streamed or whole.
#pragma once

#include <string>
#include <string_view>

#include "api/openai_chat.h"
#include "api/openai_completions.h"
#include "http/response_writer.h"
#include "http/task.h"
#include "server/routes.h"

namespace linnet {

// What differs between the OpenAI text protocols.
struct TextProtocol {
  std::string_view id_prefix;
  Result<api::ParsedRequest> (*parse)(std::string_view body, const api::ParseOptions& options);
  std::string (*encode)(const api::ReplyHead& head, std::string_view text, const FinishEvent& finish);
  api::OpenAiStream (*stream)(const api::ReplyHead& head, bool include_usage);
};

inline constexpr TextProtocol kChatProtocol = {"chatcmpl-", api::parse_chat, api::encode_chat_reply, api::chat_stream};
inline constexpr TextProtocol kCompletionProtocol = {"cmpl-", api::parse_completion, api::encode_completion_reply,
                                                     api::completion_stream};

// On the connection's IO thread, rendering and tokenizing included. If the client leaves, the request is cancelled, whether its
// answer is streamed or not.
http::Task<> answer_text(const RouteContext& context, const TextProtocol& protocol, const http::Request& request,
                         http::ResponseWriter& writer);

enum class ModelMatch {
  kAnyIfAlone,  // with one engine every name, with several an exact id
  kExact,
};

// Error: kNotFound, naming the models there are.
Result<TextEngine*> find_engine(const RouteContext& context, std::string_view model, ModelMatch match);

http::Response error_response(const Error& error);

}  // namespace linnet
