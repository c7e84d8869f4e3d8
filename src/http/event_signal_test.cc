#include "http/event_signal.h"

#include <gtest/gtest.h>

#include <thread>

#include "http/raw_client.h"
#include "http/test_server.h"

namespace linnet::http {
namespace {

constexpr char kWait[] = "POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

TEST(EventSignal, AnotherThreadWakesAHandler) {
  TestServer server;
  RawClient client(server.port());
  client.send(kWait);
  ASSERT_TRUE(eventually([&] { return server.waits().begun == 1; }));
  server.waits().notify_all();
  EXPECT_TRUE(client.read_response().ends_with("done"));
  EXPECT_EQ(server.waits().ready, 1);
  server.waits().notify_all();  // the signal is gone by now, or goes at this moment
}

TEST(EventSignal, TheClientLeavingWakesAHandler) {
  for (const bool reset : {false, true}) {
    TestServer server;
    RawClient client(server.port());
    client.send(kWait);
    ASSERT_TRUE(eventually([&] { return server.waits().begun == 1; }));
    reset ? client.reset() : client.close();
    EXPECT_TRUE(eventually([&] { return server.waits().gone == 1; }));
    EXPECT_EQ(server.waits().ready, 0);
  }
}

TEST(EventSignal, TimeWakesAHandler) {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1");
  client.read_until("0\r\n\r\n");
  EXPECT_EQ(server.waits().timeouts, 1);
}

TEST(EventSignal, NotificationsFromManyThreadsAreNotLost) {
  TestServer server;
  RawClient client(server.port());
  constexpr int kEvents = 20;
  client.send("POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n20");
  ASSERT_TRUE(eventually([&] { return server.waits().begun == 1; }));
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (!done) server.waits().notify_all();
    });
  }
  const std::string response = client.read_until("0\r\n\r\n");
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(response.ends_with("0\r\n\r\n"));
  EXPECT_EQ(server.waits().ready + server.waits().timeouts, kEvents);
}

}  // namespace
}  // namespace linnet::http
