#include "http/response_writer.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "http/connection.h"

namespace linnet::http {
namespace {

namespace asio = boost::asio;

// "1f\r\n": the length line of a chunk.
struct ChunkLine {
  explicit ChunkLine(std::size_t bytes) {
    char* end = std::to_chars(text.data(), text.data() + text.size() - 2, bytes, 16).ptr;
    *end++ = '\r';
    *end++ = '\n';
    size = static_cast<std::size_t>(end - text.data());
  }
  std::array<char, 2 * sizeof(std::size_t) + 2> text{};
  std::size_t size = 0;
};

}  // namespace

ResponseWriter::ResponseWriter(Connection& connection, asio::thread_pool& workers, Exchange exchange)
    : connection_(connection), workers_(workers), exchange_(std::move(exchange)) {}

bool ResponseWriter::client_gone() const { return connection_.gone(); }

EventSignal ResponseWriter::make_signal() { return EventSignal(connection_); }

Task<bool> ResponseWriter::send(Response response) {
  CHECK(!started_);
  started_ = true;
  exchange_.keep_alive = exchange_.keep_alive && !connection_.closing();
  const std::string head = response_head(exchange_, response, {.content_length = response.body.size(), .chunked = false});
  const asio::const_buffer body = exchange_.head_only ? asio::const_buffer() : asio::buffer(response.body);
  const std::array<asio::const_buffer, 3> buffers = {asio::buffer(head), body, asio::const_buffer()};
  const bool sent = co_await connection_.write(buffers);
  co_return sent;
}

Task<bool> ResponseWriter::start_event_stream(std::vector<Header> headers) {
  CHECK(!started_);
  started_ = true;
  streaming_ = true;
  exchange_.keep_alive = exchange_.keep_alive && exchange_.http_1_1 && !connection_.closing();
  Response response{.content_type = "text/event-stream", .headers = std::move(headers)};
  response.headers.push_back({"cache-control", "no-cache"});
  const std::string head = response_head(exchange_, response, {.content_length = {}, .chunked = exchange_.http_1_1});
  const bool sent = co_await connection_.write(asio::buffer(head));
  co_return sent;
}

Task<bool> ResponseWriter::write_event(std::string events) {
  CHECK(streaming_);
  if (events.empty() || exchange_.head_only) co_return !connection_.gone();
  if (!exchange_.http_1_1) {
    const bool sent = co_await connection_.write(asio::buffer(events));
    co_return sent;
  }
  const ChunkLine line(events.size());
  const std::array<asio::const_buffer, 3> buffers = {asio::buffer(line.text.data(), line.size), asio::buffer(events),
                                                     asio::buffer("\r\n", 2)};
  const bool sent = co_await connection_.write(buffers);
  co_return sent;
}

Task<> ResponseWriter::run_aside(std::function<void()> work) {
  const auto run = [&work]() -> Task<> {
    work();
    co_return;
  };
  co_await asio::co_spawn(workers_, run, asio::use_awaitable);
}

Task<bool> ResponseWriter::finish() {
  if (!streaming_ || !exchange_.http_1_1 || exchange_.head_only) co_return !connection_.gone();
  const bool sent = co_await connection_.write(asio::buffer("0\r\n\r\n", 5));
  co_return sent;
}

}  // namespace linnet::http
