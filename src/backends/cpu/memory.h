// How much memory this process may take.
#pragma once

#include <cstdint>

namespace linnet::cpu {

// 75 % of the machine's memory or of the cgroup's limit, whichever is less; bytes.
std::uint64_t default_memory_budget();

}  // namespace linnet::cpu
