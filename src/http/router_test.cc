#include "http/router.h"

#include <gtest/gtest.h>

#include "http/response_writer.h"

namespace linnet::http {
namespace {

Task<> nothing(const Request&, ResponseWriter&) { co_return; }

Router make_router() {
  Router router;
  router.add("GET", "/v1/models", nothing);
  router.add("GET", "/v1/models/{id}", nothing);
  router.add("DELETE", "/v1/models/{id}", nothing);
  router.add("POST", "/v1/chat", nothing);
  router.add("GET", "/v1/models/own", nothing);
  return router;
}

TEST(Router, FindsRoutes) {
  struct Row {
    const char* method;
    const char* path;
    int status;
    const char* parameter;
    const char* allow;
  };
  const Row rows[] = {
      {"GET", "/v1/models", 200, "", ""},
      {"HEAD", "/v1/models", 200, "", ""},
      {"GET", "/v1/models/a", 200, "a", ""},
      {"GET", "/v1/models/org/a", 200, "org/a", ""},
      {"GET", "/v1/models/org%2Fa%20b", 200, "org/a b", ""},
      {"DELETE", "/v1/models/a", 200, "a", ""},
      {"GET", "/v1/models/own", 200, "", ""},
      {"GET", "/v1/models/%", 400, "", ""},
      {"GET", "/v1/models/", 404, "", ""},
      {"GET", "/v1/modelsx", 404, "", ""},
      {"GET", "/", 404, "", ""},
      {"GET", "", 404, "", ""},
      {"GET", "*", 404, "", ""},
      {"POST", "/v1/models", 405, "", "GET, HEAD"},
      {"POST", "/v1/models/a", 405, "", "GET, HEAD, DELETE"},
      {"HEAD", "/v1/chat", 405, "", "POST"},
      {"get", "/v1/models", 405, "", "GET, HEAD"},
  };
  const Router router = make_router();
  for (const Row& row : rows) {
    const RouteMatch match = router.match(row.method, row.path);
    EXPECT_EQ(match.status, row.status) << row.method << " " << row.path;
    EXPECT_EQ(match.handler != nullptr, row.status == 200) << row.method << " " << row.path;
    EXPECT_EQ(match.parameter, row.parameter) << row.method << " " << row.path;
    EXPECT_EQ(match.allow, row.allow) << row.method << " " << row.path;
  }
}

TEST(RouterDeathTest, PatternsThatCannotBeMeant) {
  Router router;
  EXPECT_DEATH(router.add("GET", "models", nothing), "");
  EXPECT_DEATH(router.add("GET", "/models/{id}/more", nothing), "");
  EXPECT_DEATH(router.add("GET", "/models-{id}", nothing), "");
}

}  // namespace
}  // namespace linnet::http
