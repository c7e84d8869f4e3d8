#include "hub/http_head.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace linnet {
namespace {

HttpHead head_of(std::initializer_list<std::string_view> lines) {
  HttpHead head;
  for (const std::string_view line : lines) head.add_line(line);
  return head;
}

TEST(HttpHead, OfARedirectOnlyWhatTheHubSaidOfTheFileStays) {
  const HttpHead head = head_of({"HTTP/1.1 302 Found\r\n", "ETag: \"redirect\"", "X-Linked-Etag: W/\"linked\"", "Retry-After: 3",
                                 "\r\n", "HTTP/2 206\r\n", "ETag: \"store\"", "content-range: bytes 5-9/10"});
  EXPECT_EQ(head.status, 206);
  EXPECT_TRUE(head.redirected);
  EXPECT_EQ(head.etag, "linked");
  EXPECT_EQ(head.range_first, 5U);
  EXPECT_EQ(head.range_total, 10U);
  EXPECT_FALSE(head.retry_after);
  EXPECT_EQ(head_of({"HTTP/1.1 200 OK", "etag: \"direct\""}).etag, "direct");
  EXPECT_EQ(head_of({"HTTP/1.1 302 Found", "ETag: \"of-the-redirect\"", "HTTP/1.1 200 OK", "ETag: \"store\""}).etag, "");
  EXPECT_EQ(head_of({"HTTP/1.1 100 Continue", "HTTP/1.1 200 OK", "ETag: \"direct\""}).etag, "direct");
}

TEST(HttpHead, WaitsAreReadFromEitherHeader) {
  using std::chrono::seconds;
  EXPECT_EQ(head_of({"HTTP/1.1 429", "Retry-After: 12"}).retry_after, seconds(12));
  EXPECT_EQ(head_of({"HTTP/1.1 429", "RateLimit: \"api\";r=0;t=55"}).retry_after, seconds(55));
  EXPECT_EQ(head_of({"HTTP/1.1 429", "RateLimit: \"api\";t=5;r=0", "Retry-After: 12"}).retry_after, seconds(12));
  EXPECT_FALSE(head_of({"HTTP/1.1 429", "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT"}).retry_after);
}

TEST(HttpHead, HostileLinesDoNoHarm) {
  const HttpHead head = head_of({"HTTP/1.1", "HTTP/9.9 abc", ":", "no colon", "Content-Range: bytes -1-/x",
                                 "Content-Range: bytes */100", "ETag: \"", "Retry-After: 99999999999999999999",
                                 "RateLimit: ;t=", "X-Error-Message: a\x1b[31mb", "X-Error-Code: Gated\x07Repo"});
  EXPECT_EQ(head.status, 0);
  EXPECT_FALSE(head.range_first);
  EXPECT_FALSE(head.retry_after);
  EXPECT_EQ(head.error_message, "a?[31mb");
  EXPECT_EQ(head.error_code, "Gated?Repo");
  EXPECT_EQ(head_of({"X-Error-Message: " + std::string(1000, 'm')}).error_message.size(), 300U);
}

}  // namespace
}  // namespace linnet
