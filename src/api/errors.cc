#include "api/errors.h"

#include "api/json_text.h"
#include "base/check.h"

namespace linnet::api {
namespace {

struct ErrorClass {
  int status;
  std::string_view type;
  std::string_view code;  // empty: null
  int retry_after_s = 0;  // 0: none
};

constexpr std::string_view kInvalidRequest = "invalid_request_error";
constexpr std::string_view kServerError = "server_error";

ErrorClass classify(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return {400, kInvalidRequest, ""};
    case ErrorCode::kNotFound:
      return {404, kInvalidRequest, "model_not_found"};
    case ErrorCode::kUnsupported:
      return {400, kInvalidRequest, "unsupported"};
    case ErrorCode::kContextLengthExceeded:
      return {400, kInvalidRequest, "context_length_exceeded"};
    case ErrorCode::kTooLarge:
      return {413, kInvalidRequest, "too_large"};
    case ErrorCode::kQueueFull:
      return {429, "rate_limit_error", "queue_full", 1};
    case ErrorCode::kCancelled:
      return {499, kServerError, "cancelled"};
    case ErrorCode::kDeadlineExceeded:
      return {504, kServerError, "deadline_exceeded"};
    case ErrorCode::kCorrupt:
      return {500, kServerError, "corrupt"};
    case ErrorCode::kIo:
      return {500, kServerError, "io"};
    case ErrorCode::kUnavailable:
      return {503, kServerError, "unavailable", 1};
    case ErrorCode::kInternal:
      return {500, kServerError, "internal"};
  }
  CHECK(false);
}

std::string string_or_null(std::string_view text) { return text.empty() ? "null" : json_string(text); }

std::string encode(std::string_view message, std::string_view type, std::string_view param, std::string_view code) {
  return "{\"error\":{\"message\":" + json_string(message) + ",\"type\":" + json_string(type) +
         ",\"param\":" + string_or_null(param) + ",\"code\":" + string_or_null(code) + "}}";
}

std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

std::string encode_anthropic(int status, std::string_view message) {
  return "{\"type\":\"error\",\"error\":{\"type\":" + json_string(anthropic_type(status)) +
         ",\"message\":" + json_string(message) + "}}";
}

}  // namespace

int http_status(ErrorCode code) { return classify(code).status; }

std::optional<int> retry_after_s(ErrorCode code) {
  const int seconds = classify(code).retry_after_s;
  if (seconds == 0) return std::nullopt;
  return seconds;
}

std::string encode_error(const Error& error, ErrorShape shape) {
  const ErrorClass kind = classify(error.code);
  if (shape == ErrorShape::kAnthropic) return encode_anthropic(kind.status, error.message);
  const bool other = error.code == ErrorCode::kNotFound && error.param != "model";
  return encode(error.message, kind.type, error.param, other ? "not_found" : kind.code);
}

std::string encode_http_error(int status, std::string_view message, ErrorShape shape) {
  if (shape == ErrorShape::kAnthropic) return encode_anthropic(status, message);
  return encode(message, status >= 500 ? kServerError : kInvalidRequest, {}, status == 401 ? "invalid_api_key" : "");
}

}  // namespace linnet::api
