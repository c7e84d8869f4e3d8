#include "backends/cpu/affinity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace linnet::cpu {
namespace {

// A folder that stands for / and goes away with the test.
class Tree {
 public:
  Tree() : root_(testing::TempDir() + "affinity_test_" + std::to_string(getpid())) { std::filesystem::create_directories(root_); }
  ~Tree() { std::filesystem::remove_all(root_); }
  void add(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

struct QuotaCase {
  const char* name;
  std::vector<std::pair<const char*, const char*>> files;
  int threads;  // of 8 allowed processors
};

TEST(CpuShare, CountsWhatTheCgroupGrants) {
  const std::vector<QuotaCase> cases = {
      {"nothing to read", {}, 8},
      {"v2 without quota", {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "max 100000\n"}}, 8},
      {"v2 at the root of a container", {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "250000 100000\n"}}, 2},
      {"v2, own group", {{"/proc/self/cgroup", "0::/a/b\n"}, {"/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n"}}, 3},
      {"v2, a parent grants less",
       {{"/proc/self/cgroup", "0::/a/b\n"},
        {"/sys/fs/cgroup/a/b/cpu.max", "max 100000\n"},
        {"/sys/fs/cgroup/a/cpu.max", "150000 50000\n"}},
       3},
      {"less than one processor", {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "50000 100000\n"}}, 1},
      {"more than there are", {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", "9900000 100000\n"}}, 8},
      {"v1",
       {{"/proc/self/cgroup", "4:cpu,cpuacct:/x\n3:memory:/y\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "400000\n"},
        {"/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n"}},
       4},
      {"v1, the host's path is not visible",
       {{"/proc/self/cgroup", "4:cpuacct,cpu:/docker/abc\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
       2},
      {"v1 without quota",
       {{"/proc/self/cgroup", "1:cpu:/\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
       8},
      {"another controller with cpu in its name",
       {{"/proc/self/cgroup", "1:cpuset:/\n"},
        {"/sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000\n"},
        {"/sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000\n"}},
       8},
      {"nonsense", {{"/proc/self/cgroup", "::::\nx\n0::/\n:\n"}, {"/sys/fs/cgroup/cpu.max", "-5 0 cats"}}, 8},
      {"an empty file", {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/cpu.max", ""}}, 8},
  };
  for (const QuotaCase& c : cases) {
    const Tree tree;
    for (const auto& [path, text] : c.files) tree.add(path, text);
    const CpuShare share = cpu_share({0, 1, 2, 3, 4, 5, 6, 7}, tree.root());
    EXPECT_EQ(share.threads, c.threads) << c.name;
    EXPECT_EQ(share.cpus, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7})) << c.name;
  }
}

TEST(CpuShare, TakesOneProcessorOfEachCoreFirst) {
  const Tree tree;
  const auto place = [&](int cpu, int package, int core) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    tree.add(folder + "core_id", std::to_string(core) + "\n");
    tree.add(folder + "physical_package_id", std::to_string(package) + "\n");
  };
  // Two packages of two cores each, siblings side by side.
  for (int cpu = 0; cpu < 8; ++cpu) place(cpu, cpu / 4, cpu / 2 % 2);
  EXPECT_EQ(cpu_share({0, 1, 2, 3, 4, 5, 6, 7}, tree.root()), (CpuShare{.cpus = {0, 2, 4, 6, 1, 3, 5, 7}, .threads = 4}));
  EXPECT_EQ(cpu_share({1, 4, 5}, tree.root()), (CpuShare{.cpus = {1, 4, 5}, .threads = 2}));
}

TEST(CpuShare, OfThisMachineIsUsable) {
  const CpuShare share = cpu_share();
  ASSERT_FALSE(share.cpus.empty());
  EXPECT_GE(share.threads, 1);
  EXPECT_LE(static_cast<std::size_t>(share.threads), share.cpus.size());
  EXPECT_EQ(cpu_share({}, "/nowhere"), (CpuShare{.cpus = {0}, .threads = 1}));
}

}  // namespace
}  // namespace linnet::cpu
