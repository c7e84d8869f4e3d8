// Who may ask: keys, and what keeps web pages of strangers away.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace linnet::http {

struct AccessOptions {
  // A page can have its own name resolve to this machine and then talk to a server here as to itself (DNS rebinding): so names
  // that are not known are refused. Addresses, localhost and names under it are always known.
  bool check_host = true;
  std::vector<std::string> hosts{};       // further names, in lower case, without port
  std::vector<std::string> origins{};     // pages that may ask, as browsers name them ("https://app.example"); "*": all
  std::vector<std::string> api_keys{};    // one of them must be sent; empty: none need be
  std::vector<std::string> open_paths{};  // answered without a key
};

struct AccessDenial {
  int status = 403;  // or 401
  std::string message;
  std::vector<Header> headers{};
};

// Unchanged while it serves: any IO thread may ask.
class Access {
 public:
  explicit Access(const AccessOptions& options);

  // For a server that other machines reach under names that nobody told it. Before it serves.
  void trust_any_host() { options_.check_host = false; }

  // Empty: may pass.
  std::optional<AccessDenial> check(const Request& request) const;
  // A digest that tells the holders of keys apart, and tells nothing of the keys; empty without keys.
  std::string owner(const Request& request) const;
  // The headers that let the page read the reply; empty without an Origin that is allowed.
  std::vector<Header> cors_headers(const Request& request) const;
  // Whether a page asks, before its request, whether it may send it. The answer is cors_headers() and these, if check() passes.
  static bool is_preflight(const Request& request);
  static std::vector<Header> preflight_headers(const Request& request);

 private:
  using Digest = std::array<unsigned char, 32>;
  bool known_host(std::string_view host) const;
  bool allowed_origin(std::string_view origin) const;
  bool known_key(std::string_view key) const;

  AccessOptions options_;
  std::vector<Digest> keys_;  // of api_keys, which are not kept
};

}  // namespace linnet::http
