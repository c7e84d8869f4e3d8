#include "backends/mlx/guarded.h"

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include "weights/testing/is_error.h"

namespace linnet::mlx_backend {
namespace {

TEST(MlxGuarded, ExceptionsBecomeErrorsWithMlxsOwnWords) {
  const Status status = guarded("to multiply", []() -> Status {
    const mlx::core::Device cpu(mlx::core::Device::cpu);
    mlx::core::matmul(mlx::core::zeros({2, 3}, cpu), mlx::core::zeros({2, 3}, cpu), cpu).eval();
    return {};
  });
  EXPECT_TRUE(linnet::testing::is_error(status, ErrorCode::kInternal, {"MLX failed to multiply: ", "matmul"}));
}

TEST(MlxGuarded, ResultsPassThrough) {
  EXPECT_EQ(*guarded("nothing", []() -> Result<int> { return 7; }), 7);
  const Result<int> failed = guarded("nothing", []() -> Result<int> { return Error{ErrorCode::kNotFound, "no", ""}; });
  EXPECT_TRUE(linnet::testing::is_error(failed, ErrorCode::kNotFound, {"no"}));
}

}  // namespace
}  // namespace linnet::mlx_backend
