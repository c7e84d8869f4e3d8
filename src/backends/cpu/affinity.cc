#include "backends/cpu/affinity.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace linnet::cpu {
namespace {

constexpr double kNoQuota = std::numeric_limits<double>::infinity();

std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

// cgroup v2: "max 100000" or "150000 100000" (microseconds of CPU in each period).
double quota_v2(const std::string& folder) {
  const auto line = first_line(folder + "/cpu.max");
  if (!line) return kNoQuota;
  std::istringstream in(*line);
  double quota = 0;
  double period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return kNoQuota;  // "max" does not parse as a number
  return quota / period;
}

double quota_v1(const std::string& folder) {
  const auto quota_line = first_line(folder + "/cpu.cfs_quota_us");
  const auto period_line = first_line(folder + "/cpu.cfs_period_us");
  if (!quota_line || !period_line) return kNoQuota;
  std::istringstream quota_in(*quota_line);
  std::istringstream period_in(*period_line);
  double quota = 0;
  double period = 0;
  if (!(quota_in >> quota) || !(period_in >> period) || quota <= 0 || period <= 0) return kNoQuota;  // -1: none
  return quota / period;
}

// The least quota of `path` and its parents. In a container the path may be the host's and not exist here: parents still count.
double quota_upwards(const std::string& mount, std::string path, double (*quota_of)(const std::string&)) {
  double least = kNoQuota;
  for (;;) {
    least = std::min(least, quota_of(mount + path));
    const std::size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return least;
    path.resize(slash);
  }
}

bool names_cpu(const std::string& controllers) {
  std::istringstream in(controllers);
  std::string name;
  while (std::getline(in, name, ',')) {
    if (name == "cpu") return true;
  }
  return false;
}

// Lines of /proc/self/cgroup: "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1).
double cgroup_quota(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  double least = kNoQuota;
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t one = line.find(':');
    const std::size_t two = one == std::string::npos ? one : line.find(':', one + 1);
    if (two == std::string::npos) continue;
    const std::string controllers = line.substr(one + 1, two - one - 1);
    std::string path = line.substr(two + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      least = std::min(least, quota_upwards(root + "/sys/fs/cgroup", path, quota_v2));
    } else if (names_cpu(controllers)) {
      least = std::min(least, quota_upwards(root + "/sys/fs/cgroup/" + controllers, path, quota_v1));
      least = std::min(least, quota_upwards(root + "/sys/fs/cgroup/cpu", path, quota_v1));
    }
  }
  return least;
}

// Names a physical core; processors without topology files count as a core each.
std::string core_of(int cpu, const std::string& root) {
  const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  const auto core = first_line(folder + "core_id");
  const auto package = first_line(folder + "physical_package_id");
  if (!core || !package) return "cpu " + std::to_string(cpu);
  return *package + " " + *core;
}

}  // namespace

CpuShare cpu_share(std::vector<int> allowed, const std::string& root) {
  if (allowed.empty()) allowed.push_back(0);
  std::set<std::string> cores;
  const auto siblings =
      std::stable_partition(allowed.begin(), allowed.end(), [&](int cpu) { return cores.insert(core_of(cpu, root)).second; });
  CpuShare share;
  share.threads = static_cast<int>(siblings - allowed.begin());
  share.cpus = std::move(allowed);
  const double quota = cgroup_quota(root);
  if (quota < share.threads) share.threads = std::max(1, static_cast<int>(quota));
  return share;
}

CpuShare cpu_share() {
  std::vector<int> allowed;
#ifdef __linux__
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<unsigned>(cpu), &mask)) allowed.push_back(cpu);
    }
  }
#endif
  const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (int cpu = 0; allowed.empty() && cpu < count; ++cpu) allowed.push_back(cpu);
  return cpu_share(std::move(allowed), "");
}

}  // namespace linnet::cpu
