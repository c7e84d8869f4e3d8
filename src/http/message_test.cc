#include "http/message.h"

#include <gtest/gtest.h>

#include "http/exchange.h"

namespace linnet::http {
namespace {

TEST(Message, PercentDecoding) {
  struct Row {
    const char* text;
    std::optional<std::string> decoded;
  };
  const Row rows[] = {
      {"", ""},
      {"plain", "plain"},
      {"a%2Fb", "a/b"},
      {"%41%62", "Ab"},
      {"%", std::nullopt},
      {"%4", std::nullopt},
      {"%4g", std::nullopt},
      {"x%zz", std::nullopt},
      {"%00", std::string(1, '\0')},
      {"a+b", "a+b"},
  };
  for (const Row& row : rows) EXPECT_EQ(percent_decoded(row.text), row.decoded) << row.text;
}

TEST(Message, MediaTypeHasNoParametersAndIsLowerCase) {
  Request request;
  EXPECT_EQ(request.media_type(), "");
  request.headers = {{"content-type", "Application/JSON ; charset=utf-8"}};
  EXPECT_EQ(request.media_type(), "application/json");
}

TEST(Message, FirstHeaderOfAName) {
  Request request;
  request.headers = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
  EXPECT_EQ(request.header("a"), "1");
  EXPECT_EQ(request.header("c"), "");
}

TEST(Message, HttpDate) {
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");  // RFC 9110's example
}

TEST(Message, HeadOfAResponse) {
  const Exchange exchange{.http_1_1 = true, .head_only = false, .keep_alive = true, .request_id = "r1", .unix_time_s = 0};
  const Response response{.status = 404, .content_type = "a/b", .headers = {{"x", "y"}}};
  EXPECT_EQ(response_head(exchange, response, {.content_length = 3, .chunked = false}),
            "HTTP/1.1 404 Not Found\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-type: a/b\r\ncontent-length: 3\r\n"
            "connection: keep-alive\r\nx-request-id: r1\r\nx: y\r\n\r\n");
}

TEST(MessageDeathTest, AHeaderValueCannotSmuggleALine) {
  const Response response{.headers = {{"x", "a\r\nset-cookie: b"}}};
  EXPECT_DEATH(response_head({}, response, {}), "x");
}

}  // namespace
}  // namespace linnet::http
