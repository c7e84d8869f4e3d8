#include "http/access.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <utility>

#include "base/check.h"

namespace linnet::http {
namespace {

// "name:80", "[::1]:80" -> "name", "::1"; whatever is neither stays as it is.
std::string_view without_port(std::string_view host) {
  const std::size_t end = host.find(']');
  if (!host.starts_with('[') || end == std::string_view::npos) return host.substr(0, host.find(':'));
  const std::string_view rest = host.substr(end + 1);
  return rest.empty() || rest.front() == ':' ? host.substr(1, end - 1) : host;
}

bool is_address(const std::string& host) {
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  return !error;
}

// A page of this very server: "http://host" of the Host it asked for.
bool is_same_origin(std::string_view origin, std::string_view host) {
  const std::size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && to_lower_ascii(origin.substr(scheme + 3)) == to_lower_ascii(host);
}

// The key as either protocol sends it.
std::string_view sent_key(const Request& request) {
  const std::string_view own = request.header("x-api-key");
  if (!own.empty()) return own;
  constexpr std::string_view kScheme = "bearer ";
  std::string_view value = request.header("authorization");
  if (to_lower_ascii(value.substr(0, kScheme.size())) != kScheme) return {};
  value.remove_prefix(kScheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

std::array<unsigned char, 32> digest_of(std::string_view key) {
  std::array<unsigned char, 32> digest{};
  CHECK(EVP_Digest(key.data(), key.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return digest;
}

}  // namespace

Access::Access(const AccessOptions& options) : options_(options) {
  for (const std::string& key : options_.api_keys) keys_.push_back(digest_of(key));
  options_.api_keys.clear();
}

bool Access::known_host(std::string_view host) const {
  const std::string name = to_lower_ascii(without_port(host));
  return name.empty() || name == "localhost" || name.ends_with(".localhost") || is_address(name) ||
         std::find(options_.hosts.begin(), options_.hosts.end(), name) != options_.hosts.end();
}

bool Access::allowed_origin(std::string_view origin) const {
  return std::any_of(options_.origins.begin(), options_.origins.end(),
                     [&](const std::string& allowed) { return allowed == "*" || allowed == origin; });
}

// Digests of one length, all of them looked at: the time tells nothing of the keys.
bool Access::known_key(std::string_view key) const {
  const Digest sent = digest_of(key);
  int found = 0;
  for (const Digest& known : keys_) found |= static_cast<int>(CRYPTO_memcmp(sent.data(), known.data(), sent.size()) == 0);
  return found != 0;
}

std::optional<AccessDenial> Access::check(const Request& request) const {
  if (options_.check_host && !known_host(request.header("host"))) {
    return AccessDenial{.message = "this server is not known by the name in the Host header; allow it with --allow-host"};
  }
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && !allowed_origin(origin) && !is_same_origin(origin, request.header("host"))) {
    return AccessDenial{.message = "pages of this Origin may not ask this server; allow them with --cors"};
  }
  const auto& open = options_.open_paths;
  if (keys_.empty() || is_preflight(request) || std::find(open.begin(), open.end(), request.path) != open.end()) {
    return std::nullopt;
  }
  if (known_key(sent_key(request))) return std::nullopt;
  return AccessDenial{.status = 401,
                      .message = sent_key(request).empty()
                                     ? "an API key is needed: send Authorization: Bearer KEY or x-api-key: KEY"
                                     : "this API key is not known here",
                      .headers = {{"www-authenticate", "Bearer"}}};
}

std::string Access::owner(const Request& request) const {
  if (keys_.empty()) return {};
  std::string text;
  for (const unsigned char byte : digest_of(sent_key(request))) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::vector<Header> Access::cors_headers(const Request& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !allowed_origin(origin)) return {};
  return {{"access-control-allow-origin", std::string(origin)},
          {"access-control-expose-headers", "x-request-id, x-linnet-ignored, retry-after"},
          {"vary", "origin"}};
}

bool Access::is_preflight(const Request& request) {
  return request.method == "OPTIONS" && !request.header("origin").empty() &&
         !request.header("access-control-request-method").empty();
}

// The headers asked for are allowed: which are sent is the page's affair, once its origin is allowed.
std::vector<Header> Access::preflight_headers(const Request& request) {
  std::vector<Header> headers = {{"access-control-allow-methods", "GET, POST, DELETE"}, {"access-control-max-age", "600"}};
  const std::string_view asked = request.header("access-control-request-headers");
  if (!asked.empty()) headers.push_back({"access-control-allow-headers", std::string(asked)});
  return headers;
}

}  // namespace linnet::http
