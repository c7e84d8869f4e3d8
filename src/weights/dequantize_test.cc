#include "weights/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "weights/gguf.h"
#include "weights/half.h"
#include "weights/testing/tiny_llama.h"

namespace linnet {
namespace {

std::vector<float> dequantize(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.rows * tensor.cols));
  for (std::int64_t i = 0; i < tensor.rows; ++i)
    dequantize_row(tensor.dtype, tensor.row(i), tensor.cols, values.data() + i * tensor.cols);
  return values;
}

Tensor tensor_of(const GgufFile& file, const std::string& name) {
  const GgufTensor* tensor = file.find_tensor(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  const Result<Tensor> matrix = file.matrix(*tensor);
  EXPECT_TRUE(matrix.ok()) << name;
  return matrix.ok() ? *matrix : Tensor{};
}

// Every format, bit for bit (any NaN for a NaN), against the values that the format's own Python package gives.
TEST(Dequantize, EqualsGoldens) {
  const Result<GgufFile> file = GgufFile::open(std::string(LINNET_SOURCE_DIR) + "/tests/data/weights/dequantize.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 2 * dtypes().size());
  for (const DTypeInfo& info : dtypes()) {
    SCOPED_TRACE(info.name);
    const Tensor blocks = tensor_of(*file, std::string(info.name));
    const std::vector<float> expected = dequantize(tensor_of(*file, std::string(info.name) + ".expected"));
    const std::vector<float> values = dequantize(blocks);
    ASSERT_EQ(values.size(), 4U * 256U);
    ASSERT_EQ(expected.size(), values.size());
    ASSERT_EQ(blocks.dtype, info.dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(values[i])) << i;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(expected[i])) << i << ": " << values[i];
      }
    }
  }
}

// A block whose codes are worked out by hand.
TEST(Dequantize, PlacesCodes) {
  struct Case {
    DType dtype;
    std::vector<int> bytes;  // of the block, from byte 0; the rest is 0
    int element;
    float value;
  };
  const int half_two = 0x40;  // 2.0 is 0x4000: bytes 0, 0x40
  const Case cases[] = {
      {DType::kQ4_0, {0, half_two, 0x4F}, 0, 14},   // low nibble of byte 0
      {DType::kQ4_0, {0, half_two, 0x4F}, 16, -8},  // high nibble of byte 0
      {DType::kQ4_0, {0, half_two}, 31, -16},
      {DType::kQ4_1, {0, half_two, 0, half_two, 0x4F}, 0, 32},
      {DType::kQ4_1, {0, half_two, 0, half_two, 0x4F}, 16, 10},
      {DType::kQ5_0, {0, half_two, 1, 0, 0, 0, 0x4F}, 0, 30},  // fifth bit of element 0
      {DType::kQ5_0, {0, half_two, 1, 0, 0, 0, 0x4F}, 16, -24},
      {DType::kQ5_0, {0, half_two, 0, 0, 0, 0x80}, 31, 0},  // fifth bit of element 31
      {DType::kQ5_1, {0, half_two, 0, half_two, 1, 0, 0, 0, 0x4F}, 0, 64},
      {DType::kQ5_1, {0, half_two, 0, half_two, 1, 0, 0, 0, 0x4F}, 16, 10},
      {DType::kQ8_0, {0, half_two, 0x80, 0x7F}, 0, -256},
      {DType::kQ8_0, {0, half_two, 0x80, 0x7F}, 1, 254},
  };
  for (const Case& c : cases) {
    std::vector<std::byte> block(static_cast<std::size_t>(dtype_info(c.dtype).block_bytes));
    for (std::size_t i = 0; i < c.bytes.size(); ++i) block[i] = static_cast<std::byte>(c.bytes[i]);
    float values[32];
    dequantize_row(c.dtype, block.data(), 32, values);
    EXPECT_EQ(values[c.element], c.value) << dtype_name(c.dtype) << " element " << c.element;
  }
}

TEST(Dequantize, TakesAnyAlignmentAndEmptyRows) {
  const std::vector<std::byte> row = testing::random_tensor(DType::kQ5_1, 1, 64, 1.0F, 3);
  std::vector<std::byte> shifted(row.size() + 1);
  std::memcpy(shifted.data() + 1, row.data(), row.size());
  float here[64];
  float there[64];
  dequantize_row(DType::kQ5_1, row.data(), 64, here);
  dequantize_row(DType::kQ5_1, shifted.data() + 1, 64, there);
  EXPECT_EQ(std::memcmp(here, there, sizeof here), 0);
  for (const DTypeInfo& info : dtypes()) dequantize_row(info.dtype, nullptr, 0, nullptr);
}

TEST(RandomTensor, DeviatesAsAsked) {
  for (const DTypeInfo& info : dtypes()) {
    if (info.block_elements > 32) continue;
    const std::vector<std::byte> bytes = testing::random_tensor(info.dtype, 64, 256, 0.25F, 5);
    const Tensor tensor{.dtype = info.dtype, .rows = 64, .cols = 256, .data = bytes};
    ASSERT_EQ(bytes.size(), tensor_bytes(info.dtype, 64, 256));
    double sum = 0;
    double squares = 0;
    for (const float value : dequantize(tensor)) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    EXPECT_NEAR(sum / (64 * 256), 0, 0.03) << info.name;
    EXPECT_NEAR(std::sqrt(squares / (64 * 256)), 0.25, 0.05) << info.name;
  }
}

}  // namespace
}  // namespace linnet
