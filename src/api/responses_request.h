// POST /v1/responses: bytes to a request. Pure but for ParseOptions::stored; thread-safe.
#pragma once

#include <string_view>

#include "api/parsed_request.h"
#include "linnet/status.h"

namespace linnet::api {

// Instructions are those of this request alone, whatever a previous one had. Errors: kInvalidArgument, kUnsupported (both name
// the field in `param`), kTooLarge, those of ParseOptions::stored.
Result<ParsedRequest> parse_responses(std::string_view body, const ParseOptions& options);

}  // namespace linnet::api
