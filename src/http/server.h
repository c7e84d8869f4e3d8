// The HTTP/1.1 server: sockets, limits and threads. Knows nothing of what its handlers do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "http/access.h"
#include "http/limits.h"
#include "http/listener.h"
#include "http/router.h"
#include "linnet/status.h"

namespace linnet::http {

// The JSON body of an error that the server answers itself (401, 404, 405, 408, 413, ...). `path`: what was asked for, as far as
// it is known; protocols have errors of their own.
using ErrorBody = std::function<std::string(std::string_view path, int status, std::string_view message)>;

struct TlsFiles {
  std::string certificate;  // paths of PEM files
  std::string key;
};

struct ServerOptions {
  ListenAddress listen{};
  std::optional<TlsFiles> tls{};
  // check_host counts only for a server that listens on this machine's loopback address or a Unix socket.
  AccessOptions access{};
  int io_threads = 1;
  Limits limits{};
  ErrorBody error_body{};                  // required; any IO thread calls it
  std::function<std::string()> make_id{};  // required; for requests without an x-request-id; any IO thread calls it
  const Clock* clock = nullptr;            // required; for the Date header; outlives the server
};

// Owns its IO threads; each connection lives on one of them. A client that leaves, or a write that fails, ends that connection
// only.
class Server {
 public:
  // Listens, and serves from then on. Errors: kIo (address in use, not ours, no permission), kInvalidArgument (host, path, TLS
  // files).
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Router router);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();  // stop()

  std::uint16_t port() const;  // 0: a Unix socket
  // Where clients find it: "http://127.0.0.1:8080", "https://[::1]:8080", "unix:/run/linnet.sock".
  std::string url() const;

  // Stops accepting, closes idle connections, gives requests under way Limits::drain_timeout, then cancels them. Returns when all
  // is closed. Idempotent. Not from an IO thread.
  void stop();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet::http
