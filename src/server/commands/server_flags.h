// The flags by which `serve` says where it listens and who may ask.
#pragma once

#include <string>
#include <vector>

#include "http/server.h"
#include "linnet/status.h"

namespace CLI {
class App;
}

namespace linnet {

struct ServerFlags {
  http::ListenAddress listen;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::string tls_certificate;
  std::string tls_key;
  std::vector<std::string> origins;
  std::vector<std::string> hosts;
  std::string prefix;  // "/llm": begins with a slash, ends with none; empty: none
};

// Whether strangers are kept out: it listens on this machine's own address or on a Unix socket, or asks for a key.
bool is_private(const ServerFlags& flags);

// `flags` outlives `app`.
void add_server_flags(CLI::App& app, ServerFlags& flags);

// Into `options`, with the key file read: one key a line, empty lines and those that begin with # left out. Errors:
// kInvalidArgument naming the flag.
Status apply_server_flags(const ServerFlags& flags, http::ServerOptions& options);

}  // namespace linnet
