// POST /tokenize, /detokenize and /apply-template: what a prompt is before a model reads it. Pure; thread-safe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/parsed_request.h"
#include "linnet/status.h"

namespace linnet::api {

// A text in `content` or `prompt`, or the messages of a chat with all its fields.
Result<ParsedRequest> parse_tokenize(std::string_view body, const ParseOptions& options);
// Token ids in `tokens`.
Result<ParsedRequest> parse_detokenize(std::string_view body, const ParseOptions& options);

// {"tokens":[..],"count":..}
std::string encode_tokens(std::span<const TokenId> tokens);
// {"content":..}
std::string encode_detokenized(std::string_view text);
// {"prompt":..}
std::string encode_rendered(std::string_view text);

}  // namespace linnet::api
