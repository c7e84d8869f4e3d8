// Clients that are slow, broken, many or hostile.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "http/raw_client.h"
#include "http/test_server.h"

namespace linnet::http {
namespace {

using std::chrono::milliseconds;

constexpr char kHello[] = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";

bool serves(TestServer& server) {
  RawClient client(server.port());
  client.send(kHello);
  return client.read_response().ends_with("hello");
}

TEST(Robustness, MalformedRequestsAre400) {
  const std::string requests[] = {
      "hello\r\n\r\n",
      "GET\r\n\r\n",
      "GET /hello\r\n\r\n",
      "GET /hello HTTP/1.1\r\nHost a\r\n\r\n",
      "GET /hello HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
      "GET /hello HTTP/1.1\r\nHost: a\r\nX: a\1b\r\n\r\n",
      "GET /hello HTTP/1.1\r\nHost: a\r\nX: " + std::string(1, '\0') + "\r\n\r\n",
      "GET /he\x01llo HTTP/1.1\r\nHost: a\r\n\r\n",
      "\x16\x03\x01\x02\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\nx",
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nx",
      "POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nab\r\n0\r\n\r\n",
  };
  TestServer server;
  for (const std::string& request : requests) {
    RawClient client(server.port());
    client.send(request);
    const std::string response = client.read_all();
    EXPECT_TRUE(response.starts_with("HTTP/1.1 400 ") || response.starts_with("HTTP/1.0 400 ")) << request << "\n-> " << response;
    EXPECT_TRUE(client.server_closed()) << request;
  }
  EXPECT_TRUE(serves(server));
}

TEST(Robustness, RandomBytesNeverBreakTheServer) {
  TestServer server({.idle_timeout = milliseconds(200),
                     .header_timeout = milliseconds(50),
                     .body_timeout = milliseconds(50),
                     .linger_timeout = milliseconds(20)});
  const std::string valid = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\n0\r\n\r\n";
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::string bytes = valid;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    RawClient client(server.port());
    client.send(bytes);
    if (round % 2 == 0) client.end_sending();
    client.read_response(milliseconds(500));
  }
  EXPECT_TRUE(serves(server));
}

TEST(Robustness, HeaderLargerThanTheLimitIs431) {
  TestServer server({.header_bytes_max = 1000});
  for (const bool ended : {true, false}) {
    RawClient client(server.port());
    client.send("GET /hello HTTP/1.1\r\nHost: a\r\nX: " + std::string(1200, 'x') + (ended ? "\r\n\r\n" : ""));
    EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 431 ")) << ended;
  }
  RawClient client(server.port());
  client.send("GET /" + std::string(2000, 'x'));
  EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(serves(server));
}

TEST(Robustness, BodyLargerThanTheLimitIsRefusedBeforeItIsSent) {
  TestServer server({.body_bytes_max = 1000});
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n");
  const std::string response = client.read_until("1000 bytes");
  EXPECT_TRUE(response.starts_with("HTTP/1.1 413 ")) << response;
  EXPECT_TRUE(response.ends_with("1000 bytes")) << response;
}

TEST(Robustness, AClientThatSendsAllOfAHugeBodyReadsTheRefusal) {
  TestServer server({.body_bytes_max = 1000});
  RawClient client(server.port());
  const std::string body(20'000'000, 'x');
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_TRUE(client.send(body));
  client.end_sending();
  EXPECT_TRUE(client.read_all().starts_with("HTTP/1.1 413 "));
}

TEST(Robustness, ChunksThatGrowBeyondTheLimitAre413) {
  TestServer server({.body_bytes_max = 1000});
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "100\r\n" + std::string(256, 'x') + "\r\n";
  for (int i = 0; i < 5; ++i) client.send(chunk);
  EXPECT_TRUE(client.read_until("1000 bytes").starts_with("HTTP/1.1 413 "));
}

TEST(Robustness, SlowHeaderAndSlowBodyAre408) {
  TestServer server({.header_timeout = milliseconds(100), .body_timeout = milliseconds(100)});
  RawClient header(server.port());
  RawClient body(server.port());
  header.send("GET /hello HTTP/1.1\r\nHo");
  body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_TRUE(header.read_all().starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(body.read_all().starts_with("HTTP/1.1 408 "));
}

TEST(Robustness, ADripOfBytesDoesNotExtendTheHeaderTime) {
  TestServer server({.header_timeout = milliseconds(150)});
  RawClient client(server.port());
  const auto start = std::chrono::steady_clock::now();
  client.send("GET /hello HTTP/1.1\r\nX: ");
  std::string response;
  while (response.empty() && std::chrono::steady_clock::now() - start < std::chrono::seconds(5)) {
    client.send("x");
    response = client.read_until("\r\n", milliseconds(20));
  }
  EXPECT_TRUE(response.starts_with("HTTP/1.1 408 ")) << response;
}

TEST(Robustness, IdleConnectionsAreClosedWithoutAWord) {
  TestServer server({.idle_timeout = milliseconds(50)});
  RawClient fresh(server.port());
  EXPECT_EQ(fresh.read_all(), "");
  EXPECT_TRUE(fresh.server_closed());
  RawClient used(server.port());
  used.send(kHello);
  EXPECT_TRUE(used.read_response().ends_with("hello"));
  EXPECT_EQ(used.read_all(), "");
  EXPECT_TRUE(used.server_closed());
}

TEST(Robustness, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 50; ++i) {
    const std::string body = "body " + std::to_string(i);
    requests += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  client.send(requests);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(client.read_response().ends_with("\r\n\r\nbody " + std::to_string(i))) << i;
}

TEST(Robustness, RequestsSentDuringAStreamWait) {
  TestServer server({.read_ahead_bytes_max = 1000});
  RawClient client(server.port());
  client.send("POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.waits().begun == 1; }));
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += kHello;  // more than is read ahead
  client.send(requests);
  server.waits().notify_all();
  EXPECT_TRUE(client.read_response().ends_with("done"));
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(client.read_response().ends_with("hello")) << i;
}

TEST(Robustness, WhatIsReadAheadIsBounded) {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.waits().begun == 1; }));
  // Far more than the kernel's buffers hold.
  const std::string flood(32'000'000, 'x');
  EXPECT_LT(client.send_within(flood, milliseconds(500)), flood.size());
  client.reset();
  EXPECT_TRUE(eventually([&] { return server.waits().gone == 1; }));
}

TEST(Robustness, AHalfClosedClientStillReadsQuickAnswers) {
  TestServer server;
  RawClient client(server.port());
  client.send(std::string(kHello) + kHello);
  client.end_sending();
  const std::string response = client.read_all();
  EXPECT_NE(response.find("hello", response.find("hello") + 1), std::string::npos) << response;
}

TEST(Robustness, ManyIdleConnectionsAreHeldAndServed) {
  TestServer server;
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(server.port());
  for (const RawClient& client : clients) ASSERT_TRUE(client.connected());
  EXPECT_TRUE(serves(server));
  for (RawClient& client : clients) client.send(kHello);
  for (RawClient& client : clients) EXPECT_TRUE(client.read_response().ends_with("hello"));
}

TEST(Robustness, ConnectionsBeyondTheLimitAre503) {
  TestServer server({.connections_max = 3});
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    clients.back().send(kHello);
    EXPECT_TRUE(clients.back().read_response().ends_with("hello"));
  }
  RawClient beyond(server.port());
  beyond.send(kHello);
  EXPECT_TRUE(beyond.read_until("try again").starts_with("HTTP/1.1 503 "));
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return serves(server); }));
}

TEST(Robustness, LeavingInTheMiddleOfAStreamEndsItsHandler) {
  for (const bool reset : {false, true}) {
    TestServer server;
    RawClient client(server.port());
    client.send("POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\n1000000");
    client.read_until("data: a");
    reset ? client.reset() : client.close();
    EXPECT_TRUE(eventually([&] { return server.waits().gone == 1; }));
    EXPECT_TRUE(serves(server));
  }
}

TEST(Robustness, ASlowReaderPausesItsHandlerAndThenCountsAsGone) {
  TestServer server({.write_timeout = milliseconds(300)});
  RawClient client(server.port());
  client.shrink_receive_window();
  client.send("POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n10 900000");
  std::atomic<bool> done = false;
  std::thread notifier([&] {
    while (!done) server.waits().notify_all();
  });
  EXPECT_TRUE(eventually([&] { return server.waits().gone == 1; }));
  done = true;
  notifier.join();
  EXPECT_LT(server.waits().ready + server.waits().timeouts, 10);
  EXPECT_TRUE(serves(server));
}

TEST(Robustness, AReaderThatStartsLateGetsEverything) {
  TestServer server;
  RawClient client(server.port());
  // More than the sockets' buffers hold, so that the handler has to wait.
  client.send("POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n10 3000000");
  ASSERT_TRUE(eventually([&] { return server.waits().timeouts >= 2; }));
  const std::string response = client.read_until("0\r\n\r\n");
  EXPECT_EQ(std::count(response.begin(), response.end(), 'j'), 3'000'000);
  EXPECT_TRUE(response.ends_with("0\r\n\r\n"));
}

TEST(Robustness, ClientsThatResetAtAnyTime) {
  TestServer server;
  for (int i = 0; i < 100; ++i) {
    RawClient client(server.port());
    client.send(std::string_view(kHello).substr(0, static_cast<std::size_t>(i) % sizeof kHello));
    client.reset();
  }
  EXPECT_TRUE(serves(server));
}

}  // namespace
}  // namespace linnet::http
