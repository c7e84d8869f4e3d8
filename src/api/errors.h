// Errors as OpenAI clients see them: the one table from codes to HTTP status, type and code.
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

// {"error":{"message":...,"type":...,"param":...,"code":...}}
std::string encode_error(const Error& error);

// The same for an error that HTTP itself found, so that there is no ErrorCode.
std::string encode_http_error(int status, std::string_view message);

}  // namespace linnet::api
