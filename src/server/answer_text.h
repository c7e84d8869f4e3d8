// One text request from its bytes to the last byte of its answer, streamed or whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/errors.h"
#include "api/parsed_request.h"
#include "api/reply_head.h"
#include "http/response_writer.h"
#include "http/task.h"
#include "server/routes.h"
#include "server/stream_encoder.h"

namespace linnet {

// What differs between the text protocols.
struct TextProtocol {
  std::string_view id_prefix;
  api::ErrorShape errors;
  Result<api::ParsedRequest> (*parse)(std::string_view body, const api::ParseOptions& options);
  std::string (*encode)(const api::ReplyHead& head, const api::ParsedRequest& parsed, const api::ReplyOptions& options,
                        std::span<const TextAnswer> answers);
  StreamEncoder (*stream)(const api::ReplyHead& head, const api::ParsedRequest& parsed, const api::ReplyOptions& options,
                          std::int32_t prompt_tokens);
};

extern const TextProtocol kChatProtocol;
extern const TextProtocol kCompletionProtocol;
extern const TextProtocol kAnthropicProtocol;
extern const TextProtocol kResponsesProtocol;

// On the connection's IO thread, but parsing, templates and tokenizing of large bodies, which run aside. If the client leaves,
// the request is cancelled, whether its answer is streamed or not.
http::Task<> answer_text(const RouteContext& context, const TextProtocol& protocol, http::Request& request,
                         http::ResponseWriter& writer);

// What is asked about a prompt alone: nothing is generated.
struct PromptQuestion {
  api::ErrorShape errors;
  Result<api::ParsedRequest> (*parse)(std::string_view body, const api::ParseOptions& options);
  Result<std::string> (*answer)(const TextEngine& engine, const TextPrompt& prompt);  // JSON
};

extern const PromptQuestion kCountTokens;  // in Anthropic's words
extern const PromptQuestion kTokenize;
extern const PromptQuestion kDetokenize;
extern const PromptQuestion kApplyTemplate;  // of a chat

http::Task<> answer_prompt(const RouteContext& context, const PromptQuestion& question, http::Request& request,
                           http::ResponseWriter& writer);

http::Response error_response(const Error& error, api::ErrorShape shape = api::ErrorShape::kOpenAi);

}  // namespace linnet
