#include "base/memory_budget.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace linnet {
namespace {

constexpr double kShare = 0.75;

// The number in a file of a cgroup's, or the most there is if the file is absent or says "max".
std::uint64_t limit_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::uint64_t bytes = 0;
  return file >> bytes ? bytes : UINT64_MAX;
}

// The least limit of this process's cgroups and of those around them, version 1 or 2.
std::uint64_t cgroup_limit() {
  std::uint64_t least = UINT64_MAX;
  std::ifstream groups("/proc/self/cgroup");  // lines "id:controllers:/path"
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers.find("memory") == std::string::npos) continue;
    const std::filesystem::path root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* name = controllers.empty() ? "memory.max" : "memory.limit_in_bytes";
    std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();
    while (true) {
      least = std::min(least, limit_in(root / group / name));
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
  return least;
}

}  // namespace

std::uint64_t default_memory_budget() {
  const auto machine = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  return static_cast<std::uint64_t>(kShare * static_cast<double>(std::min(machine, cgroup_limit())));
}

std::string format_bytes(std::uint64_t bytes) {
  char text[32];
  const auto count = static_cast<double>(bytes);
  if (count < 1024.0 * 1024) {
    std::snprintf(text, sizeof text, "%.1f KiB", count / 1024);
  } else if (count < 1024.0 * 1024 * 1024) {
    std::snprintf(text, sizeof text, "%.1f MiB", count / (1024.0 * 1024));
  } else {
    std::snprintf(text, sizeof text, "%.2f GiB", count / (1024.0 * 1024 * 1024));
  }
  return text;
}

Status MemoryLeft::take(std::uint64_t bytes, const std::string& purpose) {
  if (bytes > left_) {
    return Error{ErrorCode::kTooLarge,
                 purpose + " need " + format_bytes(bytes) + ", and " + format_bytes(left_) +
                     " are left of the memory budget of " + format_bytes(budget_) + "; raise --memory-budget or lower --max-rows",
                 "--memory-budget"};
  }
  left_ -= bytes;
  return {};
}

}  // namespace linnet
