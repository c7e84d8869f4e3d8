// Ids of replies and requests: unique within a server, hard to meet twice across servers.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace linnet::api {

// Thread-safe. The same seed gives the same ids in the same order.
class ReplyIds {
 public:
  explicit ReplyIds(std::uint64_t seed) : seed_(seed) {}

  // 32 hexadecimal digits.
  std::string next();

 private:
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> count_ = 0;
};

}  // namespace linnet::api
