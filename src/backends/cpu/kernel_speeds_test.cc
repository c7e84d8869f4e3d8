#include "backends/cpu/kernel_speeds.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "backends/cpu/kernels/kernel_set.h"

namespace linnet::cpu {
namespace {

TEST(KernelSpeeds, NameEachKernelAndShapeOnceWithWhatItDid) {
  const std::vector<KernelSpeed> speeds = measure_kernels(2, runnable_kernel_sets().front()->name);
  std::set<std::pair<std::string, int>> seen;
  for (const KernelSpeed& speed : speeds) {
    EXPECT_TRUE(seen.emplace(speed.kernel, speed.rows).second) << speed.kernel << ' ' << speed.rows;
    EXPECT_GT(speed.seconds, 0) << speed.kernel;
    EXPECT_GT(speed.bytes, 0) << speed.kernel;
    EXPECT_GT(speed.flops, 0) << speed.kernel;
  }
  EXPECT_TRUE(seen.contains({"linear Q4_1", 1}) && seen.contains({"linear F16", 512}) &&
              seen.contains({"attention at 4096", 512}));
}

}  // namespace
}  // namespace linnet::cpu
