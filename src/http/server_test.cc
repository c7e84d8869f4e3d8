#include "http/server.h"

#include <gtest/gtest.h>

#include <string>

#include "http/raw_client.h"
#include "http/test_server.h"

namespace linnet::http {
namespace {

std::string reply(TestServer& server, std::string_view request) {
  RawClient client(server.port());
  client.send(request);
  return client.read_response();
}

std::string body_of(const std::string& response) {
  const std::size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "no response: " + response : response.substr(end + 4);
}

TEST(Server, AnswersAndKeepsTheConnection) {
  TestServer server;
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.send("GET /hello HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine-1\r\n\r\n");
    EXPECT_EQ(client.read_response(),
              "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n"
              "connection: keep-alive\r\nx-request-id: mine-1\r\n\r\nhello");
  }
  client.send("GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(body_of(client.read_all()), "hello");
  EXPECT_TRUE(client.server_closed());
}

TEST(Server, Statuses) {
  struct Row {
    const char* request;
    const char* status_line;
    const char* contains;
  };
  const Row rows[] = {
      {"GET /none HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 ", "404 there is no GET /none"},
      {"GET /n\xffo HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404 ", "there is no GET /n?o"},
      {"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 405 ", "allow: POST\r\n"},
      {"OPTIONS /hello HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 405 ", "allow: GET, HEAD\r\n"},
      {"BREW /hello HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 405 ", "allow: GET, HEAD\r\n"},
      {"GET /things/a%2fb?q=1 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 ", "a/b?q=1"},
      {"GET http://a/things/x HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 ", "x?"},
      {"GET /things/%zz HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 400 ", "percent"},
      {"GET /hello HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "Host"},
      {"GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400 ", "Host"},
      {"GET /hello HTTP/1.0\r\n\r\n", "HTTP/1.0 200 ", "connection: close"},
      {"GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "HTTP/1.0 200 ", "connection: keep-alive"},
      {"\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 ", "hello"},
      {"GET /hello HTTP/2.0\r\nHost: a\r\n\r\n", "HTTP/1.1 505 ", ""},
      {"GET /throw HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 500 ", "its log has request id"},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 415 ",
       "Content-Encoding"},
      {"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: luck\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 417 ", "100-continue"},
      {"POST /echo HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 ", "content-length: 0"},
      {"GET /hello HTTP/1.1\r\nHost: a\r\nX-Request-Id: a\tb\r\n\r\n", "HTTP/1.1 200 ", "x-request-id: id\r\n"},
  };
  TestServer server;
  for (const Row& row : rows) {
    const std::string response = reply(server, row.request);
    EXPECT_TRUE(response.starts_with(row.status_line)) << row.request << response;
    EXPECT_NE(response.find(row.contains), std::string::npos) << row.request << response;
  }
}

TEST(Server, HeadHasTheHeadOnly) {
  TestServer server;
  RawClient client(server.port());
  client.send("HEAD /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string response = client.read_all();
  EXPECT_NE(response.find("content-length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(response.ends_with("\r\n\r\n"));
}

TEST(Server, BodiesByLengthAndByChunks) {
  TestServer server;
  EXPECT_EQ(body_of(reply(server, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde")), "abcde");
  EXPECT_EQ(body_of(reply(server,
                          "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                          "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n")),
            "abcde");
}

TEST(Server, EverySplitOfARequestIsTheSame) {
  TestServer server;
  const std::string request =
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwxyz\r\n1\r\n!\r\n0\r\n\r\n";
  RawClient client(server.port());
  for (std::size_t cut = 1; cut < request.size(); ++cut) {
    client.send(request.substr(0, cut));
    std::this_thread::yield();
    client.send(request.substr(cut));
    EXPECT_EQ(body_of(client.read_response()), "wxyz!") << cut;
  }
}

TEST(Server, ContinueIsSaidBeforeTheBody) {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(body_of(client.read_response()), "ok");
  // Refused before the body, so without a 100.
  client.send("POST /none HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(client.read_response().starts_with("HTTP/1.1 404 "));
}

TEST(Server, LargeBodiesGoBothWays) {
  TestServer server;
  RawClient client(server.port());
  const std::string body(3'000'000, 'x');
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(body_of(client.read_response()), body);
}

TEST(Server, StreamsAreChunkedEvents) {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /stream HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n2");
  EXPECT_EQ(client.read_until("0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:00:00 GMT\r\ncontent-type: text/event-stream\r\n"
            "transfer-encoding: chunked\r\nconnection: keep-alive\r\nx-request-id: id\r\ncache-control: no-cache\r\n\r\n"
            "9\r\ndata: a\n\n\r\n9\r\ndata: b\n\n\r\n0\r\n\r\n");
  client.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(body_of(client.read_response()), "hello");
}

TEST(Server, AnOlderClientReadsAStreamToTheEnd) {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /stream HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n2");
  EXPECT_EQ(body_of(client.read_all()), "data: a\n\ndata: b\n\n");
}

TEST(Server, SeveralIoThreads) {
  TestServer server({}, 3);
  std::vector<RawClient> clients;
  for (int i = 0; i < 9; ++i) clients.emplace_back(server.port());
  for (RawClient& client : clients) client.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  for (RawClient& client : clients) EXPECT_EQ(body_of(client.read_response()), "hello");
}

TEST(Server, ListenErrorsNameAddressAndFlag) {
  TestServer server;
  VirtualClock clock;
  const auto start = [&](std::string host, std::uint16_t port) {
    ServerOptions options{.listen = {.host = std::move(host), .port = port},
                          .error_body = [](std::string_view, int, std::string_view) { return std::string(); },
                          .make_id = [] { return std::string("id"); },
                          .clock = &clock};
    return Server::start(std::move(options), Router());
  };
  const auto taken = start("127.0.0.1", server.port());
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, ErrorCode::kIo);
  EXPECT_NE(taken.error().message.find("127.0.0.1:" + std::to_string(server.port())), std::string::npos);
  EXPECT_NE(taken.error().message.find("--port"), std::string::npos);
  const auto nowhere = start("no such host", 0);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(nowhere.error().param, "--host");
  const auto foreign = start("192.0.2.1", 0);
  EXPECT_FALSE(foreign.ok());
}

TEST(Server, UrlNamesThePortInUse) {
  TestServer server;
  EXPECT_EQ(server.server().url(), "http://127.0.0.1:" + std::to_string(server.port()));
}

TEST(Server, StoppingClosesIdleConnectionsAndFinishesRequests) {
  TestServer server;
  RawClient idle(server.port());
  RawClient busy(server.port());
  idle.send("GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  idle.read_response();
  busy.send("POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.waits().begun == 1; }));
  std::thread stopper([&] { server.server().stop(); });
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_TRUE(idle.server_closed());
  EXPECT_TRUE(eventually([&] { return !RawClient(server.port()).connected(); }));
  server.waits().notify_all();
  const std::string response = busy.read_all();
  stopper.join();
  EXPECT_NE(response.find("connection: close\r\n"), std::string::npos);
  EXPECT_EQ(body_of(response), "done");
  server.server().stop();
}

TEST(Server, StoppingCancelsWhatOutlastsTheDrainTime) {
  TestServer server({.drain_timeout = std::chrono::milliseconds(50)});
  RawClient busy(server.port());
  busy.send("POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.waits().begun == 1; }));
  server.server().stop();
  EXPECT_EQ(server.waits().gone, 1);
  EXPECT_EQ(busy.read_all(), "");
  server.waits().notify_all();  // after the server's end: nothing happens
}

TEST(Server, PreflightsAndCorsHeaders) {
  TestServer server([](ServerOptions& options) { options.access.origins = {"https://app.example"}; });
  const std::string allowed = reply(server,
                                    "OPTIONS /echo HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n"
                                    "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-a\r\n\r\n");
  EXPECT_TRUE(allowed.starts_with("HTTP/1.1 204 ")) << allowed;
  EXPECT_NE(allowed.find("access-control-allow-origin: https://app.example\r\n"), std::string::npos);
  EXPECT_NE(allowed.find("access-control-allow-headers: x-a\r\n"), std::string::npos);
  EXPECT_TRUE(allowed.ends_with("\r\n\r\n"));
  const std::string refused =
      reply(server, "OPTIONS /echo HTTP/1.1\r\nHost: a\r\nOrigin: x\r\nAccess-Control-Request-Method: POST\r\n\r\n");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 403 ")) << refused;
  EXPECT_EQ(refused.find("access-control"), std::string::npos);
  const std::string answer = reply(server, "GET /hello HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n\r\n");
  EXPECT_NE(answer.find("access-control-allow-origin: https://app.example\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("hello"));
}

TEST(Server, AllBodiesTogetherAreBounded) {
  Limits limits;
  limits.bodies_bytes_max = 1000;
  TestServer server(limits);
  RawClient holder(server.port());
  holder.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 901\r\n\r\n" + std::string(900, 'x'));
  const std::string other = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200\r\n\r\n" + std::string(200, 'y');
  // The holder's bytes may still be on their way.
  std::string refused;
  EXPECT_TRUE(eventually([&] {
    refused = reply(server, other);
    return refused.starts_with("HTTP/1.1 503 ");
  }));
  EXPECT_NE(refused.find("retry-after: 1\r\n"), std::string::npos);
  EXPECT_TRUE(reply(server, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok").ends_with("ok"));
  holder.send("z");
  EXPECT_TRUE(holder.read_response().ends_with("xz"));
  EXPECT_TRUE(reply(server, other).ends_with("yy"));
}

TEST(Server, WorkAsideComesBackAndSurvivesAClientThatLeaves) {
  TestServer server;
  const std::string request = "POST /aside HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  for (int i = 0; i < 50; ++i) {
    RawClient leaving(server.port());
    leaving.send(request);
    leaving.reset();
  }
  EXPECT_TRUE(reply(server, request).ends_with("abc"));
}

}  // namespace
}  // namespace linnet::http
