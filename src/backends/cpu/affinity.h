// Which processors this process may use, and how many of them are worth using.
#pragma once

#include <string>
#include <vector>

namespace linnet::cpu {

struct CpuShare {
  std::vector<int> cpus;  // allowed by the affinity mask; one of each physical core first, then their siblings. Not empty.
  int threads = 1;        // physical cores among them, but no more than the cgroup's CPU quota (rounded down, at least 1)

  bool operator==(const CpuShare&) const = default;
};

// The calling thread's mask and its cgroup (v1 or v2, with every parent's quota). What can't be read counts as no limit.
CpuShare cpu_share();

// The same from a mask and a file tree (`root`/proc/self/cgroup, `root`/sys/...), for tests.
CpuShare cpu_share(std::vector<int> allowed, const std::string& root);

}  // namespace linnet::cpu
