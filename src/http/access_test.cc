#include "http/access.h"

#include <gtest/gtest.h>

#include <string>

namespace linnet::http {
namespace {

Request request_of(std::vector<Header> headers, std::string method = "POST") {
  Request request;
  request.method = std::move(method);
  request.path = "/v1/models";
  request.headers = std::move(headers);
  return request;
}

int status_of(const Access& access, const Request& request) {
  const auto denial = access.check(request);
  return denial ? denial->status : 200;
}

TEST(Access, HostsThatAreKnown) {
  const Access access({.hosts = {"box.lan"}});
  const std::pair<const char*, int> rows[] = {
      {"localhost", 200},
      {"LOCALHOST:8080", 200},
      {"127.0.0.1:8080", 200},
      {"[::1]:8080", 200},
      {"10.1.2.3", 200},
      {"web.localhost:80", 200},
      {"box.lan", 200},
      {"Box.Lan:8080", 200},
      {"evil.example", 403},
      {"evil.example:8080", 403},
      {"box.lan.evil.example", 403},
      {"localhost.evil.example", 403},
      {"127.0.0.1.evil.example", 403},
      {"notlocalhost", 403},
      {"[::1].evil.example", 403},
  };
  for (const auto& [host, status] : rows) EXPECT_EQ(status_of(access, request_of({{"host", host}})), status) << host;
  EXPECT_EQ(status_of(Access({.check_host = false}), request_of({{"host", "evil.example"}})), 200);
}

TEST(Access, PagesOfOtherOriginsAreRefused) {
  const Access closed({});
  const Access open({.origins = {"https://app.example"}});
  const Access all({.origins = {"*"}});
  struct Row {
    const char* origin;
    int closed;
    int open;
  };
  const Row rows[] = {
      {"http://localhost:8080", 200, 200},  // its own page
      {"https://app.example", 403, 200},   {"https://app.example.evil", 403, 403},
      {"http://app.example", 403, 403},    {"null", 403, 403},
      {"http://localhost:3000", 403, 403},
  };
  for (const Row& row : rows) {
    const Request request = request_of({{"host", "localhost:8080"}, {"origin", row.origin}});
    EXPECT_EQ(status_of(closed, request), row.closed) << row.origin;
    EXPECT_EQ(status_of(open, request), row.open) << row.origin;
    EXPECT_EQ(status_of(all, request), 200) << row.origin;
    EXPECT_EQ(open.cors_headers(request).empty(), std::string(row.origin) != "https://app.example") << row.origin;
    EXPECT_EQ(all.cors_headers(request)[0].value, row.origin);
    EXPECT_TRUE(closed.cors_headers(request).empty());
  }
}

TEST(Access, Keys) {
  const Access access({.api_keys = {"alpha", "beta-2"}, .open_paths = {"/health"}});
  const auto status = [&](const char* name, const char* value) {
    return status_of(access, request_of({{"host", "localhost"}, {name, value}}));
  };
  EXPECT_EQ(status("authorization", "Bearer alpha"), 200);
  EXPECT_EQ(status("authorization", "bearer  beta-2"), 200);
  EXPECT_EQ(status("x-api-key", "alpha"), 200);
  EXPECT_EQ(status("x-api-key", "alph"), 401);
  EXPECT_EQ(status("x-api-key", "alphaa"), 401);
  EXPECT_EQ(status("authorization", "alpha"), 401);
  EXPECT_EQ(status("authorization", "Basic alpha"), 401);
  EXPECT_EQ(status("authorization", "Bearer"), 401);
  EXPECT_EQ(status("authorization", "Bearer "), 401);
  EXPECT_EQ(status("accept", "*/*"), 401);
  const auto owner = [&](const char* name, const char* value) { return access.owner(request_of({{name, value}})); };
  EXPECT_EQ(owner("authorization", "Bearer alpha"), owner("x-api-key", "alpha"));
  EXPECT_NE(owner("x-api-key", "alpha"), owner("x-api-key", "beta-2"));
  EXPECT_EQ(owner("x-api-key", "alpha").size(), 64U);
  EXPECT_EQ(Access({}).owner(request_of({{"x-api-key", "alpha"}})), "");
  Request health = request_of({{"host", "localhost"}});
  health.path = "/health";
  EXPECT_EQ(status_of(access, health), 200);
  health.path = "/healthy";
  EXPECT_EQ(status_of(access, health), 401);
}

TEST(Access, PreflightsNeedNoKeyButAnAllowedOrigin) {
  const Access access({.origins = {"https://app.example"}, .api_keys = {"k"}});
  const auto preflight = [](const char* origin) {
    return request_of({{"host", "localhost"}, {"origin", origin}, {"access-control-request-method", "POST"}}, "OPTIONS");
  };
  EXPECT_TRUE(Access::is_preflight(preflight("x")));
  EXPECT_FALSE(Access::is_preflight(request_of({{"host", "a"}, {"origin", "x"}}, "OPTIONS")));
  EXPECT_EQ(status_of(access, preflight("https://app.example")), 200);
  EXPECT_EQ(status_of(access, preflight("https://evil.example")), 403);
}

}  // namespace
}  // namespace linnet::http
