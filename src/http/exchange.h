// What a reply needs to know of the request that it answers, and the head it starts with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http/message.h"

namespace linnet::http {

struct Exchange {
  bool http_1_1 = true;           // else 1.0: no chunks
  bool head_only = false;         // HEAD: no body
  bool keep_alive = false;        // the client wants it, and the request was read to its end
  std::string request_id{};       // safe to send back
  std::vector<Header> headers{};  // of every reply to this request: CORS
  std::int64_t unix_time_s = 0;
};

struct BodyFraming {
  std::optional<std::size_t> content_length;  // absent: a stream
  bool chunked = false;
};

// Status line and headers up to and with the empty line. `response`'s body is not looked at.
std::string response_head(const Exchange& exchange, const Response& response, const BodyFraming& framing);

}  // namespace linnet::http
