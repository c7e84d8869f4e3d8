#include "server/commands/server_flags.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/log.h"
#include "http/message.h"

namespace linnet {
namespace {

std::string check_prefix(std::string& prefix) {
  if (!prefix.starts_with('/')) prefix.insert(prefix.begin(), '/');
  while (prefix.ends_with('/')) prefix.pop_back();
  const bool plain = prefix.find_first_of(" ?#%{}") == std::string::npos;
  return plain ? std::string() : "must be a plain path such as /llm";
}

Status read_keys(const std::string& path, std::vector<std::string>& keys) {
  std::ifstream file(path);
  if (!file) return Error{ErrorCode::kInvalidArgument, "--api-key-file " + path + ": " + std::strerror(errno), "--api-key-file"};
  const std::size_t before = keys.size();
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string::npos || line[begin] == '#') continue;
    keys.push_back(line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin));
  }
  if (keys.size() > before) return {};
  return Error{ErrorCode::kInvalidArgument, "--api-key-file " + path + " has no key: write one a line", "--api-key-file"};
}

}  // namespace

bool is_private(const ServerFlags& flags) {
  const std::string& host = flags.listen.host;
  const bool loopback = host == "localhost" || host == "::1" || host.starts_with("127.");
  return loopback || !flags.listen.unix_path.empty() || !flags.api_keys.empty() || !flags.api_key_file.empty();
}

void add_server_flags(CLI::App& app, ServerFlags& flags) {
  app.add_option("--host", flags.listen.host, "Address to listen on")->envname("LINNET_HOST");
  app.add_option("--port", flags.listen.port, "Port to listen on; 0: any free one")->envname("LINNET_PORT");
  app.add_option("--unix", flags.listen.unix_path, "Listen on this socket file instead of host and port")->envname("LINNET_UNIX");
  app.add_option("--api-key", flags.api_keys, "A key that requests must send; may be given several times")
      ->check([](const std::string& key) { return key.empty() ? "must not be empty" : std::string(); })
      ->envname("LINNET_API_KEY");
  app.add_option("--api-key-file", flags.api_key_file, "A file with one key a line")->envname("LINNET_API_KEY_FILE");
  auto* certificate = app.add_option("--tls-cert", flags.tls_certificate, "Serve HTTPS: a PEM file with the certificate's chain")
                          ->envname("LINNET_TLS_CERT");
  auto* key = app.add_option("--tls-key", flags.tls_key, "Its private key, a PEM file")->envname("LINNET_TLS_KEY");
  certificate->needs(key);
  key->needs(certificate);
  app.add_option("--cors,--allowed-origins", flags.origins, "Origins of web pages that may ask (https://app.example), or *")
      ->delimiter(',')
      ->envname("LINNET_CORS");
  app.add_option("--allow-host", flags.hosts, "Further names that this server is known by, beside localhost and addresses")
      ->delimiter(',')
      ->envname("LINNET_ALLOW_HOST");
  app.add_option("--api-prefix", flags.prefix, "A path before all paths, such as /llm")
      ->transform(CLI::Validator(check_prefix, "PATH", "prefix"))
      ->envname("LINNET_API_PREFIX");
}

Status apply_server_flags(const ServerFlags& flags, http::ServerOptions& options) {
  options.listen = flags.listen;
  options.access.api_keys = flags.api_keys;
  if (!flags.api_key_file.empty()) LINNET_RETURN_IF_ERROR(read_keys(flags.api_key_file, options.access.api_keys));
  options.access.origins = flags.origins;
  for (const std::string& host : flags.hosts) options.access.hosts.push_back(http::to_lower_ascii(host));
  options.access.hosts.push_back(http::to_lower_ascii(flags.listen.host));
  if (!flags.tls_certificate.empty()) options.tls = {.certificate = flags.tls_certificate, .key = flags.tls_key};
  return {};
}

}  // namespace linnet
