// What to make of one attempt to fetch something: pure, and every message about a hub in one place.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "hub/http_head.h"
#include "hub/hub_options.h"
#include "linnet/status.h"

namespace linnet {

// What is fetched, for messages.
struct FetchSubject {
  std::string repository;
  std::string revision;
  std::string file;  // empty: the list of files
};

// How one transfer ended.
struct FetchAttempt {
  CURLcode code = CURLE_OK;
  std::string detail;  // libcurl's words on `code`
  HttpHead head;
  std::uint64_t received = 0;       // bytes of content
  std::optional<Error> sink_error;  // why the receiver refused bytes, if it did
  bool reached_before = false;      // an earlier transfer got some reply: the network has been there
};

struct FetchVerdict {
  Error error;
  std::string passing;                        // what happened, if trying again may help; empty: it will not
  std::optional<std::chrono::seconds> after;  // as the hub wishes
};

// Nothing: it went well.
std::optional<FetchVerdict> judge(const FetchAttempt& attempt, const FetchSubject& subject, const HubOptions& options);

Error fetch_interrupted();

}  // namespace linnet
