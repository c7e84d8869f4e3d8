// How much memory this process may take, and what is left of it while a model is loaded.
#pragma once

#include <cstdint>
#include <string>

#include "linnet/status.h"

namespace linnet {

// 75 % of the machine's memory or of this process's cgroups' limits, whichever is least; bytes.
std::uint64_t default_memory_budget();

std::string format_bytes(std::uint64_t bytes);  // "1.25 GiB"

// A budget that shrinks as parts of it are taken, before they are touched.
class MemoryLeft {
 public:
  explicit MemoryLeft(std::uint64_t budget) : budget_(budget), left_(budget) {}

  std::uint64_t bytes() const { return left_; }
  // Error (kTooLarge), naming what it is for, both sizes and the flag.
  Status take(std::uint64_t bytes, const std::string& purpose);

 private:
  std::uint64_t budget_;
  std::uint64_t left_;
};

}  // namespace linnet
