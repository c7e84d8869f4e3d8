#include "backends/mlx/matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "weights/dequantize.h"
#include "weights/half.h"

namespace linnet::mlx_backend {
namespace {

constexpr std::int64_t kRows = 3;
constexpr std::int64_t kCols = 512;

// Random codes under scales of ordinary size.
std::vector<std::byte> random_bytes(DType dtype, Rng& rng) {
  const DTypeInfo& info = dtype_info(dtype);
  std::vector<std::byte> bytes(*tensor_bytes(dtype, kRows, kCols));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
  const auto put = [&](std::size_t at) {
    const std::uint16_t half = float_to_half((static_cast<float>(rng.below(2001)) - 1000.0F) * 1e-4F);
    std::memcpy(bytes.data() + at, &half, sizeof half);
  };
  const auto block_bytes = static_cast<std::size_t>(info.block_bytes);
  for (std::size_t block = 0; block < bytes.size(); block += block_bytes) {
    if (dtype == DType::kQ6_K) {
      put(block + 208);
    } else {
      put(block);
      if (dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ4_K || dtype == DType::kQ5_K) put(block + 2);
    }
  }
  return bytes;
}

std::vector<float> values(const mx::array& array) {
  mx::array numbers = mx::astype(array, mx::float32, mx::Device::cpu);
  numbers.eval();
  return {numbers.data<float>(), numbers.data<float>() + numbers.size()};
}

std::vector<float> values(const Matrix& matrix) {
  if (!matrix.scales) return values(matrix.weight);
  return values(mx::dequantize(matrix.weight, *matrix.scales, matrix.biases, matrix.group, matrix.bits, "affine", std::nullopt,
                               std::nullopt, mx::Device::cpu));
}

std::vector<float> dequantized(const Tensor& tensor) {
  std::vector<float> all(static_cast<std::size_t>(tensor.rows * tensor.cols));
  for (std::int64_t row = 0; row < tensor.rows; ++row)
    dequantize_row(tensor.dtype, tensor.row(row), tensor.cols, all.data() + row * tensor.cols);
  return all;
}

TEST(MlxMatrix, BlocksKeepTheirNumbersInFloat32) {
  Rng rng(3);
  for (const DType dtype :
       {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    const std::vector<std::byte> bytes = random_bytes(dtype, rng);
    const Tensor tensor{.dtype = dtype, .rows = kRows, .cols = kCols, .data = bytes};
    const Matrix matrix = make_gguf_matrix(tensor, mx::float32);
    EXPECT_EQ(values(matrix), dequantized(tensor)) << dtype_name(dtype);
    EXPECT_LE(matrix.bytes(), matrix_bytes_max(tensor)) << dtype_name(dtype);
    EXPECT_EQ(matrix.scales.has_value(), dtype != DType::kQ6_K) << dtype_name(dtype);
  }
}

// In a model of 16 bits scales are halves where they fit, which loses nothing, and float32 where they don't.
TEST(MlxMatrix, ScalesAreNeverRounded) {
  Rng rng(4);
  for (const DType dtype : {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ4_K, DType::kQ5_K}) {
    const std::vector<std::byte> bytes = random_bytes(dtype, rng);
    const Tensor tensor{.dtype = dtype, .rows = kRows, .cols = kCols, .data = bytes};
    const bool k = dtype == DType::kQ4_K || dtype == DType::kQ5_K;
    const Matrix exact = make_gguf_matrix(tensor, mx::float32);
    for (const mx::Dtype type : {mx::float16, mx::bfloat16}) {
      const Matrix matrix = make_gguf_matrix(tensor, type);
      EXPECT_EQ(matrix.number_type(), k ? mx::float32 : mx::float16) << dtype_name(dtype);
      EXPECT_EQ(values(*matrix.scales), values(*exact.scales)) << dtype_name(dtype);
      EXPECT_EQ(values(*matrix.biases), values(*exact.biases)) << dtype_name(dtype);
    }
  }
}

TEST(MlxMatrix, PlainNumbersKeepTheirBitsAndTakeTheModelsType) {
  Rng rng(5);
  std::vector<float> numbers(static_cast<std::size_t>(kRows * kCols));
  for (float& number : numbers) number = static_cast<float>(rng.below(4096)) * 0x1p-9F - 4;
  const Tensor tensor{.dtype = DType::kF32, .rows = kRows, .cols = kCols, .data = std::as_bytes(std::span(numbers))};
  EXPECT_EQ(values(make_matrix(tensor)), numbers);
  const Matrix half = make_gguf_matrix(tensor, mx::float16);
  EXPECT_EQ(half.weight.dtype(), mx::float16);
  for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(values(half)[i], half_to_float(float_to_half(numbers[i]))) << i;
  const Tensor vector{.dtype = DType::kF32, .rows = 1, .cols = kCols, .data = tensor.data.first(kCols * sizeof(float))};
  EXPECT_EQ(make_vector(vector).shape(), (mx::Shape{kCols}));
  EXPECT_EQ(make_gguf_vector(vector, mx::bfloat16).dtype(), mx::bfloat16);
}

TEST(MlxMatrix, AffineGroupsAreTakenAsTheyAre) {
  Rng rng(6);
  for (const std::int32_t bits : {2, 3, 4, 5, 6, 8}) {
    const std::int32_t group = 64;
    const auto codes_bytes = static_cast<std::size_t>(kRows * kCols * bits / 8);
    std::vector<std::byte> codes(codes_bytes);
    for (std::byte& byte : codes) byte = static_cast<std::byte>(rng.below(256));
    std::vector<float> scales(static_cast<std::size_t>(kRows * kCols / group), 0.25F);
    std::vector<float> biases(scales.size(), -2.0F);
    const Tensor tensor{.rows = kRows,
                        .cols = kCols,
                        .data = codes,
                        .affine = AffineGroups{.bits = bits,
                                               .group = group,
                                               .type = DType::kF32,
                                               .scales = std::as_bytes(std::span(scales)),
                                               .biases = std::as_bytes(std::span(biases))}};
    const std::vector<float> numbers = values(make_matrix(tensor));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::uint32_t code = 0;
      for (std::size_t bit = 0; bit < static_cast<std::size_t>(bits); ++bit) {
        const std::size_t at = i * static_cast<std::size_t>(bits) + bit;
        code |= ((static_cast<std::uint32_t>(codes[at / 8]) >> (at % 8)) & 1U) << bit;
      }
      ASSERT_EQ(numbers[i], 0.25F * static_cast<float>(code) - 2) << bits << " bits, element " << i;
    }
  }
}

}  // namespace
}  // namespace linnet::mlx_backend
