// POST /v1/chat/completions: bytes to a request, an answer to bytes. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/openai_stream.h"
#include "api/parsed_request.h"
#include "api/reply_head.h"
#include "linnet/status.h"

namespace linnet::api {

// Errors: kInvalidArgument, kUnsupported (both name the field in `param`), kTooLarge.
Result<ParsedRequest> parse_chat(std::string_view body, const ParseOptions& options);

// The whole reply to a request that was not streamed. No answer has an error.
std::string encode_chat_reply(const ReplyHead& head, const ReplyOptions& options, std::span<const TextAnswer> answers);

// The encoder of a streamed reply: a first chunk with the role, content deltas, a last chunk with finish_reason.
OpenAiStream chat_stream(const ReplyHead& head, const ReplyOptions& options);

}  // namespace linnet::api
