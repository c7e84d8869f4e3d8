#include "server/debug_routes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/served.h"

namespace linnet {
namespace {

std::string get(const Served& served, const std::string& path) {
  return served.ask("GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(DebugRoutes, AreThereOnlyWhereTheyAreAllowed) {
  const Served closed;
  EXPECT_TRUE(get(closed, "/metrics").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(get(closed, "/debug/steps").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(get(closed, "/debug/trace/a").starts_with("HTTP/1.1 404"));
  const Served open([](RouteContext& context) { context.debug = true; });
  EXPECT_TRUE(get(open, "/debug/steps").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(get(open, "/debug/steps?format=json").ends_with("\r\n\r\n[{\"model\":\"tiny\",\"steps\":[]}]"));
  EXPECT_NE(get(open, "/debug/trace/a").find("x-linnet-trace-id"), std::string::npos);
}

TEST(DebugRoutes, MetricsNameTheModel) {
  const Served served;
  const std::string metrics = get(served, "/metrics");
  EXPECT_NE(metrics.find("content-type: text/plain; version=0.0.4"), std::string::npos);
  EXPECT_NE(metrics.find("linnet_requests_running{model=\"tiny\"} 0\n"), std::string::npos);
}

TEST(DebugRoutes, TheTraceHeaderReachesTheRequest) {
  Served served;
  served.engine().script({FinishEvent{}});
  const std::string body = R"({"messages":[{"role":"user","content":"hi"}]})";
  served.ask(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-linnet-trace-id: abc\r\nContent-Type: application/json\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::shared_ptr<ScriptedAnswer> answer = served.engine().answer(0);
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->request().trace_id, "abc");
}

}  // namespace
}  // namespace linnet
