// POST /v1/messages and /v1/messages/count_tokens: bytes to a request. Pure; thread-safe.
#pragma once

#include <string_view>

#include "api/parsed_request.h"
#include "linnet/status.h"

namespace linnet::api {

// System in the field of that name or among the messages; tool results become messages of their own before the rest of their
// turn. Errors: kInvalidArgument, kUnsupported (both name the field in `param`), kTooLarge.
Result<ParsedRequest> parse_anthropic(std::string_view body, const ParseOptions& options);

}  // namespace linnet::api
