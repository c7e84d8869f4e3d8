// POST /v1/completions: bytes to a request, an answer to bytes. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "api/openai_stream.h"
#include "api/parsed_request.h"
#include "api/reply_head.h"
#include "linnet/status.h"

namespace linnet::api {

// `prompt`: a string, token ids, or an array of exactly one of them. Errors as parse_chat().
Result<ParsedRequest> parse_completion(std::string_view body, const ParseOptions& options);

// The whole reply to a request that was not streamed. `finish` has no error.
std::string encode_completion_reply(const ReplyHead& head, std::string_view text, const FinishEvent& finish);

// The encoder of a streamed reply: text chunks, a last chunk with finish_reason.
OpenAiStream completion_stream(const ReplyHead& head, bool include_usage);

}  // namespace linnet::api
