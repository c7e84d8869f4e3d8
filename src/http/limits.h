// Every limit of the HTTP server, in one table.
#pragma once

#include <chrono>
#include <cstddef>

namespace linnet::http {

struct Limits {
  std::size_t header_bytes_max = 64 * 1024;               // request line and headers; more is 431
  std::size_t body_bytes_max = std::size_t{32} << 20;     // after chunked decoding; more is 413
  std::size_t bodies_bytes_max = std::size_t{256} << 20;  // of all bodies not yet parsed, together; more is 503
  std::size_t read_ahead_bytes_max = 64 * 1024;           // pipelined bytes kept while a handler runs
  std::size_t linger_bytes_max = std::size_t{64} << 20;   // read and dropped after an early refusal, so that it arrives
  int connections_max = 1024;                             // more are answered 503 and closed
  int refusals_max = 64;                                  // 503 answers under way at the same time; beyond, closed without one

  std::chrono::milliseconds idle_timeout{75'000};    // from connecting, or from the last reply, to a request's first byte
  std::chrono::milliseconds header_timeout{10'000};  // from its first byte to the end of its header; later is 408
  std::chrono::milliseconds body_timeout{120'000};   // from there to the end of its body; later is 408
  std::chrono::milliseconds write_timeout{120'000};  // for the client to take one write; then it counts as gone
  std::chrono::milliseconds linger_timeout{3'000};   // for a refused client to stop sending
  std::chrono::milliseconds drain_timeout{10'000};   // for requests under way when the server stops
};

}  // namespace linnet::http
