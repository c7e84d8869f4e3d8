#include "http/connection.h"

#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "base/check.h"

namespace linnet::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kReceiveBytes = 64 * 1024;      // at most, in one system call
constexpr std::size_t kKeptBufferBytes = 256 * 1024;  // a larger buffer is given back between requests

bool would_block(const error_code& error) { return error == asio::error::would_block || error == asio::error::try_again; }

// Drops the first `sent` bytes; true if something is left.
bool advance(std::array<asio::const_buffer, 3>& buffers, std::size_t sent) {
  for (asio::const_buffer& buffer : buffers) {
    const std::size_t here = std::min(sent, buffer.size());
    buffer += here;
    sent -= here;
  }
  return asio::buffer_size(buffers) > 0;
}

}  // namespace

Connection::Connection(Transport transport, const Limits& limits)
    : transport_(std::move(transport)), limits_(limits), wakeup_(transport_.socket().get_executor()) {
  error_code ignored;
  transport_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);  // a Unix socket has no such option
  error_code error;
  transport_.socket().native_non_blocking(true, error);
  if (!error) transport_.socket().non_blocking(true, error);
  broken_ = static_cast<bool>(error);
}

Connection::~Connection() { CHECK(!readable_wait_ && !writable_wait_ && !broken_wait_); }

std::size_t Connection::receive() {
  error_code error;
  const std::size_t received = transport_.read_some(buffer_.prepare(kReceiveBytes), error);
  buffer_.commit(received);
  if (error == asio::error::interrupted || would_block(error)) return received;
  if (error == asio::error::eof) {
    ended_ = true;
  } else if (error) {
    broken_ = true;
  }
  return received;
}

void Connection::wait_readable() {
  if (readable_wait_ || gone()) return;
  readable_wait_ = true;
  transport_.socket().async_wait(Socket::wait_read, [this](error_code error) {
    readable_wait_ = false;
    if (error && error != asio::error::operation_aborted) broken_ = true;
    if (!error && watching_ahead_) {
      receive();
      begin_watching();
    }
    wakeup_.wake();
  });
}

void Connection::wait_writable() {
  if (writable_wait_) return;
  writable_wait_ = true;
  transport_.socket().async_wait(Socket::wait_write, [this](error_code error) {
    writable_wait_ = false;
    if (error) broken_ = true;
    wakeup_.wake();
  });
}

// With the read-ahead full, a client that closes properly is behind what it sent before; one that breaks off is still noticed.
void Connection::wait_broken() {
  if (broken_wait_ || gone()) return;
  broken_wait_ = true;
  transport_.socket().async_wait(Socket::wait_error, [this](error_code) {
    broken_wait_ = false;
    broken_ = true;
    wakeup_.wake();
  });
}

void Connection::begin_watching() {
  watching_ahead_ = true;
  if (buffer_.size() < limits_.read_ahead_bytes_max) {
    wait_readable();
  } else {
    wait_broken();
  }
}

Task<Connection::Fill> Connection::fill() { return fill_until(/*idle=*/false); }

Task<Connection::Fill> Connection::fill_idle() {
  if (buffer_.size() == 0 && buffer_.capacity() > kKeptBufferBytes) buffer_ = boost::beast::flat_buffer();
  return fill_until(/*idle=*/true);
}

Task<Connection::Fill> Connection::fill_until(bool idle) {
  for (;;) {
    if (gone() || (idle && closing_)) co_return Fill::kEnd;
    if (receive() > 0) co_return Fill::kBytes;
    transport_.read_wants_room() ? wait_writable() : wait_readable();
    if (gone()) co_return Fill::kEnd;
    const bool woken = co_await wakeup_.sleep();
    if (!woken) co_return Fill::kTimeout;
  }
}

Task<bool> Connection::write(std::array<asio::const_buffer, 3> buffers) {
  bool waited = false;
  while (!broken_) {
    error_code error;
    const std::size_t sent = transport_.write_some(buffers, error);
    if (!advance(buffers, sent)) co_return true;
    if (error && !would_block(error) && error != asio::error::interrupted) broken_ = true;
    if (broken_) break;
    if (sent > 0) waited = false;
    if (!error) continue;
    if (!waited) wakeup_.set_deadline(limits_.write_timeout);
    waited = true;
    wait_writable();
    const bool woken = co_await wakeup_.sleep();
    if (!woken) broken_ = true;
  }
  co_return false;
}

Task<bool> Connection::write(asio::const_buffer buffer) {
  return write(std::array<asio::const_buffer, 3>{buffer, asio::const_buffer(), asio::const_buffer()});
}

Task<> Connection::linger() {
  transport_.end_sending();
  wakeup_.set_deadline(limits_.linger_timeout);
  std::size_t dropped = 0;
  while (dropped < limits_.linger_bytes_max) {
    dropped += buffer_.size();
    buffer_.consume(buffer_.size());
    const Fill filled = co_await fill_until(/*idle=*/true);
    if (filled != Fill::kBytes) break;
  }
}

Task<> Connection::close() {
  watching_ahead_ = false;
  error_code ignored;
  transport_.socket().shutdown(Socket::shutdown_both, ignored);
  transport_.socket().close(ignored);
  wakeup_.set_deadline(std::nullopt);
  while (readable_wait_ || writable_wait_ || broken_wait_) {
    co_await wakeup_.sleep();
  }
}

void Connection::shut_down() {
  closing_ = true;
  wakeup_.wake();
}

void Connection::abort() {
  closing_ = true;
  broken_ = true;
  error_code ignored;
  transport_.socket().close(ignored);
  wakeup_.wake();
}

}  // namespace linnet::http
