#include "api/errors.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace linnet::api {
namespace {

TEST(Errors, EachCodeHasAStatusATypeAndACode) {
  struct Row {
    ErrorCode code;
    int status;
    const char* type;
    const char* name;
    bool retry;
  };
  const Row rows[] = {
      {ErrorCode::kInvalidArgument, 400, "invalid_request_error", nullptr, false},
      {ErrorCode::kNotFound, 404, "invalid_request_error", "not_found", false},
      {ErrorCode::kUnsupported, 400, "invalid_request_error", "unsupported", false},
      {ErrorCode::kContextLengthExceeded, 400, "invalid_request_error", "context_length_exceeded", false},
      {ErrorCode::kTooLarge, 413, "invalid_request_error", "too_large", false},
      {ErrorCode::kQueueFull, 429, "rate_limit_error", "queue_full", true},
      {ErrorCode::kCancelled, 499, "server_error", "cancelled", false},
      {ErrorCode::kDeadlineExceeded, 504, "server_error", "deadline_exceeded", false},
      {ErrorCode::kCorrupt, 500, "server_error", "corrupt", false},
      {ErrorCode::kIo, 500, "server_error", "io", false},
      {ErrorCode::kUnavailable, 503, "server_error", "unavailable", true},
      {ErrorCode::kInternal, 500, "server_error", "internal", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(http_status(row.code), row.status);
    EXPECT_EQ(retry_after_s(row.code).has_value(), row.retry);
    const auto json = nlohmann::json::parse(encode_error({row.code, "m", "p"}));
    EXPECT_EQ(json["error"]["type"], row.type);
    EXPECT_EQ(json["error"]["code"], row.name == nullptr ? nlohmann::json(nullptr) : nlohmann::json(row.name));
    EXPECT_EQ(json["error"]["param"], "p");
  }
}

TEST(Errors, Bytes) {
  EXPECT_EQ(encode_error({ErrorCode::kInvalidArgument, "say \"x\"\n", ""}),
            R"({"error":{"message":"say \"x\"\n","type":"invalid_request_error","param":null,"code":null}})");
  EXPECT_EQ(encode_http_error(404, "no"),
            R"({"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}})");
  EXPECT_EQ(encode_http_error(503, "no"), R"({"error":{"message":"no","type":"server_error","param":null,"code":null}})");
}

TEST(Errors, AMissingModelHasACodeOfItsOwn) {
  EXPECT_EQ(encode_error({ErrorCode::kNotFound, "m", "model"}),
            R"({"error":{"message":"m","type":"invalid_request_error","param":"model","code":"model_not_found"}})");
}

TEST(Errors, AnthropicsShape) {
  const auto encoded = [](ErrorCode code) { return encode_error({code, "say \"why\"", "field"}, ErrorShape::kAnthropic); };
  EXPECT_EQ(encoded(ErrorCode::kInvalidArgument),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"say \"why\""}})");
  const std::pair<ErrorCode, const char*> rows[] = {
      {ErrorCode::kNotFound, "not_found_error"},       {ErrorCode::kUnsupported, "invalid_request_error"},
      {ErrorCode::kTooLarge, "request_too_large"},     {ErrorCode::kQueueFull, "rate_limit_error"},
      {ErrorCode::kUnavailable, "overloaded_error"},   {ErrorCode::kInternal, "api_error"},
      {ErrorCode::kDeadlineExceeded, "timeout_error"},
  };
  for (const auto& [code, type] : rows) EXPECT_NE(encoded(code).find(std::string("\"") + type + "\""), std::string::npos) << type;
  EXPECT_EQ(encode_http_error(401, "no", ErrorShape::kAnthropic),
            R"({"type":"error","error":{"type":"authentication_error","message":"no"}})");
  EXPECT_EQ(encode_http_error(403, "no", ErrorShape::kAnthropic),
            R"({"type":"error","error":{"type":"permission_error","message":"no"}})");
  EXPECT_EQ(encode_http_error(401, "no"),
            R"({"error":{"message":"no","type":"invalid_request_error","param":null,"code":"invalid_api_key"}})");
}

}  // namespace
}  // namespace linnet::api
