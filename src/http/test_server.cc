#include "http/test_server.h"

#include <stdexcept>

namespace linnet::http {
namespace {

Response text(std::string body) { return {.content_type = "text/plain", .body = std::move(body)}; }

Task<> hello(const Request&, ResponseWriter& writer) {
  Response response = text("hello");
  co_await writer.send(std::move(response));
}

Task<> thing(const Request& request, ResponseWriter& writer) {
  Response response = text(request.parameter + "?" + request.query);
  co_await writer.send(std::move(response));
}

Task<> echo(const Request& request, ResponseWriter& writer) {
  Response response = text(request.body);
  co_await writer.send(std::move(response));
}

// The body, or so much of it as another thread copied.
Task<> aside(const Request& request, ResponseWriter& writer) {
  std::string copy;
  co_await writer.run_aside([&] { copy = request.body; });
  Response response = text(std::move(copy));
  co_await writer.send(std::move(response));
}

Task<> fail(const Request&, ResponseWriter&) {
  throw std::runtime_error("out of luck");
  co_return;
}

}  // namespace

Task<> TestServer::wait(const Request&, ResponseWriter& writer) {
  EventSignal signal = writer.make_signal();
  waits_.add(signal.notifier());
  const Wake wake = co_await signal.wait();
  if (wake == Wake::kGone) {
    ++waits_.gone;
    co_return;
  }
  ++waits_.ready;
  Response response = text("done");
  co_await writer.send(std::move(response));
}

// The body is the number of events, and behind a space the size of each.
Task<> TestServer::stream(const Request& request, ResponseWriter& writer) {
  const int count = std::stoi(request.body);
  const std::size_t space = request.body.find(' ');
  const std::size_t size = space == std::string::npos ? 1 : std::stoul(request.body.substr(space));
  EventSignal signal = writer.make_signal();
  waits_.add(signal.notifier());
  std::vector<Header> headers;
  co_await writer.start_event_stream(std::move(headers));
  for (int i = 0; i < count; ++i) {
    const Wake wake = co_await signal.wait(std::chrono::milliseconds(50));
    if (wake == Wake::kGone) {
      ++waits_.gone;
      co_return;
    }
    ++(wake == Wake::kReady ? waits_.ready : waits_.timeouts);
    std::string event = "data: " + std::string(size, static_cast<char>('a' + i % 26)) + "\n\n";
    const bool sent = co_await writer.write_event(std::move(event));
    if (!sent) {
      ++waits_.gone;
      co_return;
    }
  }
}

TestServer::TestServer(Limits limits, int io_threads)
    : TestServer([&](ServerOptions& options) {
        options.limits = limits;
        options.io_threads = io_threads;
      }) {}

TestServer::TestServer(const std::function<void(ServerOptions&)>& change) {
  Router router;
  router.add("GET", "/hello", hello);
  router.add("GET", "/things/{id}", thing);
  router.add("POST", "/echo", echo);
  router.add("POST", "/aside", aside);
  router.add("GET", "/throw", fail);
  router.add("POST", "/wait", [this](const Request& request, ResponseWriter& writer) { return wait(request, writer); });
  router.add("POST", "/stream", [this](const Request& request, ResponseWriter& writer) { return stream(request, writer); });
  ServerOptions options{
      .listen = {.port = 0},
      .access = {.check_host = false},
      .error_body = [](std::string_view, int status,
                       std::string_view message) { return std::to_string(status) + " " + std::string(message); },
      .make_id = [] { return std::string("id"); },
      .clock = &clock_};
  change(options);
  auto server = Server::start(std::move(options), std::move(router));
  CHECK(server.ok());
  server_ = *std::move(server);
}

}  // namespace linnet::http
