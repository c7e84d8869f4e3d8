// Requests and responses as values: what handlers see of HTTP.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/body_budget.h"

namespace linnet::http {

struct Header {
  std::string name;  // lower case
  std::string value;

  bool operator==(const Header&) const = default;
};

struct Request {
  std::string method;           // "GET", "POST", ...
  std::string path;             // without query, as sent (percent-encoded)
  std::string query;            // behind the '?', as sent
  std::vector<Header> headers;  // in the order sent
  std::string body;             // chunked encoding removed
  std::string parameter;        // what a route's {name} stood for, decoded
  std::string id;               // the client's x-request-id, or one of ours
  std::string owner;            // a digest of the API key that was sent; empty where no keys are used
  BodyLease body_lease;         // the body's share of what all bodies may hold

  // The first header of that (lower-case) name; empty if there is none.
  std::string_view header(std::string_view name) const;
  // Content-Type without parameters, in lower case; empty if absent.
  std::string media_type() const;
  // A body that was read for good; answers may take minutes.
  void drop_body();
};

struct Response {
  int status = 200;
  std::string content_type{};  // empty: no Content-Type header
  std::string body{};
  std::vector<Header> headers{};  // besides those of the protocol; values must not hold line ends
};

// The reason phrase of `status`; "Status" for one that the server does not use.
std::string_view reason_phrase(int status);

// "%41b" -> "Ab". Empty for an incomplete or non-hexadecimal escape.
std::optional<std::string> percent_decoded(std::string_view text);

std::string to_lower_ascii(std::string_view text);

// "Thu, 01 Jan 1970 00:00:00 GMT"
std::string http_date(std::int64_t unix_time_s);

}  // namespace linnet::http
