#include "server/cache_routes.h"

#include <gtest/gtest.h>

#include <string>

#include "server/served.h"

namespace linnet {
namespace {

std::string ask(const Served& served, const std::string& line) { return served.ask(line + " HTTP/1.1\r\nHost: a\r\n\r\n"); }

TEST(CacheRoutes, AreThereOnlyWhereTheyAreAllowed) {
  const Served closed;
  EXPECT_TRUE(ask(closed, "GET /v1/cache").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(closed, "DELETE /v1/cache").starts_with("HTTP/1.1 404"));
}

TEST(CacheRoutes, ShowAndForget) {
  Served served([](RouteContext& context) { context.debug = true; });
  served.engine().set_cache({{.id = 3, .name_space = 255, .tokens = 70, .bytes = 96, .own_bytes = 64, .hits = 2, .idle_s = 1.5},
                             {.id = 7, .tokens = 9}});
  const std::string first =
      R"({"id":"tiny/3","object":"cache.entry","model":"tiny","namespace":"00000000000000ff","tier":"ram","tokens":70,)"
      R"("bytes":96,"own_bytes":64,"hits":2,"idle_seconds":1.5})";
  EXPECT_TRUE(ask(served, "GET /v1/cache/tiny/3").ends_with("\r\n\r\n{\"object\":\"list\",\"data\":[" + first + "]}"));
  EXPECT_NE(ask(served, "GET /cache").find(first + ",{\"id\":\"tiny/7\""), std::string::npos);
  for (const char* path : {"/v1/cache/tiny/4", "/v1/cache/tiny/", "/v1/cache/3", "/v1/cache/other/3", "/v1/cache/tiny/3x"}) {
    EXPECT_TRUE(ask(served, std::string("DELETE ") + path).starts_with("HTTP/1.1 404")) << path;
  }
  EXPECT_NE(ask(served, "DELETE /v1/cache/tiny/3").find(first), std::string::npos);
  EXPECT_EQ(ask(served, "GET /v1/cache").find("tiny/3"), std::string::npos);
  EXPECT_NE(ask(served, "DELETE /v1/cache").find("tiny/7"), std::string::npos);
  EXPECT_TRUE(ask(served, "GET /v1/cache").ends_with("{\"object\":\"list\",\"data\":[]}"));
}

}  // namespace
}  // namespace linnet
