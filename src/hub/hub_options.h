// Which hub is asked, on whose behalf, and how patiently.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "linnet/status.h"

namespace linnet {

struct FetchProgress {
  std::uint64_t done = 0;  // bytes, of all files together; what a former run left counts
  std::uint64_t total = 0;
};

struct HubOptions {
  std::string endpoint = "https://huggingface.co";  // without a slash at the end
  std::string token;                                // empty: none. Goes to the endpoint's own host only
  std::filesystem::path cache;                      // hub_cache_folder()
  std::string authorities;                          // file of certificates to trust; empty: the system's
  int attempts_max = 5;                             // in a row that bring nothing
  std::chrono::seconds stall{30};                   // a transfer that stands still this long counts as cut
  std::stop_token stop;
  std::function<void(std::string_view)> say;            // one line each
  std::function<void(const FetchProgress&)> progress;   // after each piece that came
  std::function<void(std::chrono::milliseconds)> wait;  // between attempts; may return early when stopped
};

// From HF_ENDPOINT, HF_TOKEN or the token file (HF_TOKEN_PATH, else token in huggingface_home()), hub_cache_folder(), and
// SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE. Errors: kInvalidArgument for an endpoint that is no http(s) URL and a
// token that is none; kUnavailable if HF_HUB_OFFLINE says not to ask; kNotFound as hub_cache_folder().
Result<HubOptions> hub_options_from_environment(std::stop_token stop);

}  // namespace linnet
