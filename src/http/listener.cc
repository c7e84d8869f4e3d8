#include "http/listener.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

namespace linnet::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;

std::string to_text(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

Error listen_error(const std::string& where, const error_code& error) {
  std::string message = "cannot listen on " + where + ": " + error.message();
  if (error == asio::error::address_in_use) message += "; another program has it, choose another port with --port";
  if (error == asio::error::access_denied) message += "; ports below 1024 need privileges, choose another with --port";
  return {ErrorCode::kIo, std::move(message), "--port"};
}

Result<tcp::endpoint> resolve(asio::io_context& io, const std::string& host, std::uint16_t port) {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (!error) return tcp::endpoint(address, port);
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--host " + host + " is neither an address nor a known name: " + error.message(),
                 "--host"};
  }
  // IPv4 first: who connects by name tries both.
  const auto v4 = std::find_if(found.begin(), found.end(), [](const auto& entry) { return entry.endpoint().address().is_v4(); });
  return (v4 == found.end() ? found.begin() : v4)->endpoint();
}

error_code open(Acceptor& acceptor, const asio::generic::stream_protocol::endpoint& endpoint) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

Result<Listening> listen_on_tcp(asio::io_context& io, const ListenAddress& where) {
  LINNET_ASSIGN(const tcp::endpoint wanted, resolve(io, where.host, where.port));
  Listening listening{.acceptor = Acceptor(io), .address = {}, .port = 0, .loopback = wanted.address().is_loopback()};
  error_code error = open(listening.acceptor, wanted);
  tcp::endpoint bound = wanted;
  if (!error) {
    const auto local = listening.acceptor.local_endpoint(error);
    bound.resize(local.size());
    std::memcpy(bound.data(), local.data(), local.size());
  }
  if (error) return listen_error(to_text(wanted), error);
  listening.address = to_text(bound);
  listening.port = bound.port();
  return listening;
}

// A socket file that a dead server left behind is no reason not to start; anything else under that name is.
Status clear_path(asio::io_context& io, const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return {};
  if (!S_ISSOCK(found.st_mode)) {
    return Error{ErrorCode::kInvalidArgument, "--unix " + path + " exists and is no socket; choose another path", "--unix"};
  }
  stream_protocol::socket probe(io);
  error_code error;
  probe.connect(stream_protocol::endpoint(path), error);
  if (!error) return Error{ErrorCode::kIo, "another program listens on --unix " + path + "; choose another path", "--unix"};
  ::unlink(path.c_str());
  return {};
}

Result<Listening> listen_on_unix(asio::io_context& io, const std::string& path) {
  constexpr std::size_t kPathBytesMax = 107;  // of sockaddr_un, less the final zero
  if (path.size() > kPathBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 "--unix has " + std::to_string(path.size()) + " bytes; the system takes " + std::to_string(kPathBytesMax),
                 "--unix"};
  }
  LINNET_RETURN_IF_ERROR(clear_path(io, path));
  Listening listening{.acceptor = Acceptor(io), .address = path, .port = 0, .loopback = true};
  // The owner's alone from its first moment.
  const mode_t before = ::umask(0177);
  const error_code error = open(listening.acceptor, stream_protocol::endpoint(path));
  ::umask(before);
  if (error) return Error{ErrorCode::kIo, "cannot listen on --unix " + path + ": " + error.message(), "--unix"};
  return listening;
}

}  // namespace

Result<Listening> listen(asio::io_context& io, const ListenAddress& where) {
  return where.unix_path.empty() ? listen_on_tcp(io, where) : listen_on_unix(io, where.unix_path);
}

}  // namespace linnet::http
