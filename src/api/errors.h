// Errors as clients see them: the one table from codes to HTTP status, type and code.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "linnet/status.h"

namespace linnet::api {

// The HTTP status of an error.
int http_status(ErrorCode code);

// Seconds after which it makes sense to try again, for the Retry-After header.
std::optional<int> retry_after_s(ErrorCode code);

// Which protocol's clients read it.
enum class ErrorShape {
  kOpenAi,     // {"error":{"message":...,"type":...,"param":...,"code":...}}
  kAnthropic,  // {"type":"error","error":{"type":...,"message":...}}
};

std::string encode_error(const Error& error, ErrorShape shape = ErrorShape::kOpenAi);

// The same for an error that HTTP itself found, so that there is no ErrorCode.
std::string encode_http_error(int status, std::string_view message, ErrorShape shape = ErrorShape::kOpenAi);

}  // namespace linnet::api
