#include "http/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace linnet::http {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

SteadyTime after(std::chrono::milliseconds patience) { return std::chrono::steady_clock::now() + patience; }

}  // namespace

RawClient::RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) close();
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

RawClient RawClient::to_unix_socket(const std::string& path) {
  RawClient client;
  client.socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(client.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) client.close();
  return client;
}

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), closed_(other.closed_), received_(std::move(other.received_)) {}

RawClient::~RawClient() { close(); }

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::size_t RawClient::send_within(std::string_view bytes, std::chrono::milliseconds patience) {
  const SteadyTime deadline = after(patience);
  std::size_t total = 0;
  while (total < bytes.size()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{.fd = socket_, .events = POLLOUT, .revents = 0};
    if (left.count() <= 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t sent = ::send(socket_, bytes.data() + total, bytes.size() - total, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) break;
    total += static_cast<std::size_t>(sent);
  }
  return total;
}

bool RawClient::receive(SteadyTime deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd entry{.fd = socket_, .events = POLLIN, .revents = 0};
  if (socket_ < 0 || closed_ || left.count() < 0 || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) return false;
  std::array<char, 16384> piece{};
  const ssize_t got = ::recv(socket_, piece.data(), piece.size(), 0);
  if (got <= 0) {
    closed_ = true;
    return false;
  }
  received_.append(piece.data(), static_cast<std::size_t>(got));
  return true;
}

std::string RawClient::read_until(std::string_view marker, std::chrono::milliseconds patience) {
  const SteadyTime deadline = after(patience);
  std::size_t searched = 0;
  std::size_t found_at = std::string::npos;
  while ((found_at = received_.find(marker, searched)) == std::string::npos) {
    searched = received_.size() - std::min(received_.size(), marker.size());
    if (!receive(deadline)) return std::exchange(received_, {});
  }
  const std::size_t end = found_at + marker.size();
  std::string found = received_.substr(0, end);
  received_.erase(0, end);
  return found;
}

std::string RawClient::read_response(std::chrono::milliseconds patience) {
  const SteadyTime deadline = after(patience);
  std::string response = read_until("\r\n\r\n", patience);
  const std::size_t field = response.find("content-length: ");
  if (field == std::string::npos) return response;
  const std::size_t length = std::strtoul(response.c_str() + field + 16, nullptr, 10);
  while (received_.size() < length && receive(deadline)) {
  }
  const std::size_t take = std::min(length, received_.size());
  response.append(received_, 0, take);
  received_.erase(0, take);
  return response;
}

std::string RawClient::read_all(std::chrono::milliseconds patience) {
  const SteadyTime deadline = after(patience);
  while (receive(deadline)) {
  }
  return std::exchange(received_, {});
}

void RawClient::shrink_receive_window() {
  const int bytes = 4096;
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

void RawClient::end_sending() { ::shutdown(socket_, SHUT_WR); }

void RawClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void RawClient::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

}  // namespace linnet::http
