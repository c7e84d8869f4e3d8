#include "backends/cpu/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace linnet::cpu {
namespace {

constexpr double kShare = 0.75;

// The number in a file of the cgroup's, or the most there is if the file is absent or says "max".
std::uint64_t limit_in(const char* path) {
  std::ifstream file(path);
  std::uint64_t bytes = 0;
  return file >> bytes ? bytes : UINT64_MAX;
}

}  // namespace

std::uint64_t default_memory_budget() {
  const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  const std::uint64_t limit =
      std::min({machine, limit_in("/sys/fs/cgroup/memory.max"), limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
  return static_cast<std::uint64_t>(kShare * static_cast<double>(limit));
}

}  // namespace linnet::cpu
