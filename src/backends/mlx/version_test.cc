#include "backends/mlx/version.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <vector>

namespace linnet::mlx_backend {
namespace {

namespace mx = mlx::core;

TEST(Mlx, LoadedLibraryIsTheOneBuiltAgainst) {
  const Status status = check_version();
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
}

TEST(Mlx, MultipliesTwoMatrices) {
  mx::set_default_device(mx::Device(mx::Device::cpu));
  const mx::array a({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  const mx::array b({5.0F, 6.0F, 7.0F, 8.0F}, {2, 2});
  mx::array c = mx::matmul(a, b);
  c.eval();
  EXPECT_EQ(std::vector<float>(c.data<float>(), c.data<float>() + 4), (std::vector<float>{19.0F, 22.0F, 43.0F, 50.0F}));
}

}  // namespace
}  // namespace linnet::mlx_backend
