// Transfers from a hub by HTTP, tried again where that helps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "hub/fetch_verdict.h"
#include "hub/http_head.h"
#include "hub/hub_options.h"
#include "linnet/status.h"

namespace linnet {

// Where content goes. An error of the last two ends the fetch, untried again.
struct BodySink {
  std::function<std::uint64_t()> have;           // bytes that need not come again
  std::function<Status(const HttpHead&)> begin;  // before the first byte of each good reply (200 or 206)
  std::function<Status(std::string_view)> add;
};

// One connection, kept between transfers. One thread. Borrows the options.
class HubClient {
 public:
  explicit HubClient(const HubOptions& options);

  // Fetches endpoint + path (percent-encoded) into the sink, following redirects; the token stays with the endpoint's host. Cut
  // transfers go on where they stopped; these, 5xx, 408 and 429 are tried `attempts_max` times in a row in vain, waiting 1 s, 2
  // s, 4 s or as long as the hub asks. Errors: as judge() says; kCancelled when stopped.
  Status fetch(const std::string& path, const FetchSubject& subject, const BodySink& sink);
  // A small text, whole. Error beside fetch()'s: kTooLarge above `bytes_max`.
  Result<std::string> fetch_text(const std::string& path, const FetchSubject& subject, std::size_t bytes_max);

 private:
  struct Close {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  FetchAttempt attempt(const std::string& path, const BodySink& sink);

  const HubOptions& options_;
  std::unique_ptr<CURL, Close> handle_;
  bool reached_ = false;  // some reply came
};

// For a URL's path; '/' stays.
std::string percent_encoded_path(std::string_view path);
// '/' does not stay.
std::string percent_encoded_part(std::string_view part);

}  // namespace linnet
