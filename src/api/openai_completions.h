// POST /v1/completions: bytes to a request, an answer to bytes. Pure functions; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/openai_stream.h"
#include "api/parsed_request.h"
#include "api/reply_head.h"
#include "linnet/status.h"

namespace linnet::api {

// `prompt`: a string, token ids, or an array of exactly one of them. Errors as parse_chat().
Result<ParsedRequest> parse_completion(std::string_view body, const ParseOptions& options);

// The whole reply to a request that was not streamed. No answer has an error.
std::string encode_completion_reply(const ReplyHead& head, const ReplyOptions& options, std::span<const TextAnswer> answers);

// The encoder of a streamed reply: text chunks, a last chunk with finish_reason.
OpenAiStream completion_stream(const ReplyHead& head, const ReplyOptions& options);

}  // namespace linnet::api
