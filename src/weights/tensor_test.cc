#include "weights/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <set>
#include <vector>

namespace linnet {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(DTypes, TableIsInOrderAndUnique) {
  std::set<std::uint32_t> numbers;
  std::size_t index = 0;
  for (const DTypeInfo& info : dtypes()) {
    EXPECT_EQ(static_cast<std::size_t>(info.dtype), index++);
    EXPECT_TRUE(numbers.insert(info.gguf_type).second) << info.name;
    EXPECT_EQ(dtype_from_gguf(info.gguf_type), info.dtype);
    EXPECT_EQ(dtype_name(info.dtype), info.name);
  }
  EXPECT_EQ(index, 11U);
  EXPECT_EQ(dtype_from_gguf(9), std::nullopt);
  EXPECT_EQ(dtype_from_gguf(~0U), std::nullopt);
}

TEST(TensorBytes, CountsBlocks) {
  struct Case {
    DType dtype;
    std::int64_t rows, cols;
    std::optional<std::size_t> bytes;
  };
  const Case cases[] = {
      {DType::kF32, 3, 5, 60},
      {DType::kF16, 1, 7, 14},
      {DType::kBF16, 2, 2, 8},
      {DType::kQ4_0, 2, 64, 72},
      {DType::kQ4_1, 1, 32, 20},
      {DType::kQ5_0, 1, 32, 22},
      {DType::kQ5_1, 1, 32, 24},
      {DType::kQ8_0, 3, 32, 102},
      {DType::kQ4_K, 1, 256, 144},
      {DType::kQ5_K, 1, 256, 176},
      {DType::kQ6_K, 2, 512, 840},
      {DType::kF32, 0, 5, 0},
      {DType::kQ8_0, 5, 0, 0},
      {DType::kQ4_0, 1, 31, std::nullopt},  // inside a block
      {DType::kQ6_K, 1, 128, std::nullopt},
      {DType::kF32, -1, 5, std::nullopt},
      {DType::kF32, 1, -4, std::nullopt},
      {DType::kF32, 1, kMax / 4 + 1, std::nullopt},
      {DType::kF32, kMax / 4, 2, std::nullopt},
      {DType::kF16, std::int64_t{1} << 32, std::int64_t{1} << 32, std::nullopt},
      {DType::kQ8_0, 1, kMax - 31, std::nullopt},
  };
  for (const Case& c : cases)
    EXPECT_EQ(tensor_bytes(c.dtype, c.rows, c.cols), c.bytes) << dtype_name(c.dtype) << c.rows << "x" << c.cols;
}

TEST(TensorRow, StepsByWholeRows) {
  const std::vector<std::byte> data(3 * 68);
  const Tensor tensor{.dtype = DType::kQ8_0, .rows = 3, .cols = 64, .data = data};
  EXPECT_EQ(tensor.row_bytes(), 68U);
  EXPECT_EQ(tensor.row(2) - tensor.row(0), 136);
  EXPECT_DEATH(tensor.row(3), "CHECK");
  EXPECT_DEATH(tensor.row(-1), "CHECK");
}

}  // namespace
}  // namespace linnet
