// Where a server listens: a TCP address or a Unix socket.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <string>

#include "linnet/status.h"

namespace linnet::http {

using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;

struct ListenAddress {
  std::string host = "127.0.0.1";  // a name or an address
  std::uint16_t port = 8080;       // 0: any free one
  std::string unix_path{};         // a socket file instead of host and port; one that nobody listens on is replaced
};

struct Listening {
  Acceptor acceptor;
  std::string address;     // "127.0.0.1:8080", "[::1]:8080", the path of a Unix socket
  std::uint16_t port = 0;  // 0: a Unix socket
  bool loopback = false;   // reached from this machine alone
};

// Errors: kIo (address in use, not ours, no permission), kInvalidArgument (host, path).
Result<Listening> listen(boost::asio::io_context& io, const ListenAddress& where);

}  // namespace linnet::http
