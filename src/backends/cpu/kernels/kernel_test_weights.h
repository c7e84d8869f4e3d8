// Random weights in the formats of files, and what each weight is: read one by one, without the kernels' layouts.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/kernels/guarded_bytes.h"
#include "weights/half.h"
#include "weights/tensor.h"

namespace linnet::cpu {

// A format of weights: GGUF's, or MLX's affine groups where bits != 0.
struct TestFormat {
  constexpr TestFormat(DType type) : dtype(type) {}  // NOLINT(google-explicit-constructor): tables of types
  constexpr TestFormat(std::int32_t code_bits, std::int32_t columns, DType numbers)
      : dtype(numbers), bits(code_bits), group(columns) {}

  DType dtype;  // with bits: of scales and biases
  std::int32_t bits = 0;
  std::int32_t group = 0;

  bool affine() const {
    return bits != 0 || dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ4_K || dtype == DType::kQ5_K;
  }
  std::string name() const {
    const std::string type(dtype_name(dtype));
    return bits == 0 ? type : "affine " + std::to_string(bits) + " bits, groups of " + std::to_string(group) + " in " + type;
  }
  // The least multiple of what a row may have that is at least `cols`.
  int fitting(int cols) const {
    const int block = bits != 0 ? group : dtype_info(dtype).block_elements;
    return (cols + block - 1) / block * block;
  }
};

inline constexpr TestFormat kQuantizedFormats[] = {
    DType::kQ4_0,         DType::kQ4_1,          DType::kQ5_0,          DType::kQ5_1,          DType::kQ8_0,
    DType::kQ4_K,         DType::kQ5_K,          DType::kQ6_K,          {2, 64, DType::kF16},  {3, 32, DType::kBF16},
    {4, 32, DType::kF32}, {4, 64, DType::kBF16}, {4, 128, DType::kF16}, {5, 64, DType::kF32},  {6, 128, DType::kBF16},
    {8, 32, DType::kF16}, {8, 64, DType::kBF16}, {8, 128, DType::kF32}, {2, 128, DType::kF32}, {3, 128, DType::kF16},
};
inline constexpr TestFormat kDenseFormats[] = {DType::kF32, DType::kF16, DType::kBF16};

inline std::vector<TestFormat> all_formats() {
  std::vector<TestFormat> all(std::begin(kQuantizedFormats), std::end(kQuantizedFormats));
  all.insert(all.end(), std::begin(kDenseFormats), std::end(kDenseFormats));
  return all;
}

// A number of F32, F16 or BF16 as its bits, and back.
inline std::uint32_t number_bits(DType type, float value) {
  if (type == DType::kF32) return std::bit_cast<std::uint32_t>(value);
  return type == DType::kF16 ? float_to_half(value) : std::bit_cast<std::uint32_t>(value) >> 16;
}
inline std::size_t number_size(DType type) { return type == DType::kF32 ? 4 : 2; }
inline float number_from(DType type, const std::byte* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, number_size(type));
  if (type == DType::kF32) return std::bit_cast<float>(bits);
  return type == DType::kF16 ? half_to_float(static_cast<std::uint16_t>(bits))
                             : bfloat16_to_float(static_cast<std::uint16_t>(bits));
}

// A matrix in its file's format, ending at a page that may not be touched. Scales are about 2^-7, some of them subnormal halves,
// some negative, some zero.
struct TestWeights {
  Tensor tensor;
  GuardedBytes bytes, scales, biases;

  TestWeights(TestFormat format, std::int64_t rows, std::int64_t cols, std::uint32_t seed)
      : tensor{format.dtype, rows, cols, {}, {}},
        bytes(code_bytes_of(format, rows, cols)),
        scales(numbers_of(format, rows, cols)),
        biases(numbers_of(format, rows, cols)),
        random_(seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes.data()[i] = static_cast<std::byte>(random_());
    tensor.data = {bytes.data(), bytes.size()};
    if (format.bits != 0) {
      const std::size_t size = number_size(format.dtype);
      for (std::size_t at = 0; at < scales.size(); at += size) {
        put(scales, at, format.dtype, scale());
        put(biases, at, format.dtype, scale());
      }
      tensor.affine =
          AffineGroups{format.bits, format.group, format.dtype, {scales.data(), scales.size()}, {biases.data(), biases.size()}};
      return;
    }
    const auto block = static_cast<std::size_t>(dtype_info(format.dtype).block_bytes);
    for (std::size_t at = 0; at < bytes.size(); at += block) fill_block(format.dtype, at);
  }

  void put(const GuardedBytes& to, std::size_t at, DType type, float value) {
    const std::uint32_t bits = number_bits(type, value);
    std::memcpy(to.data() + at, &bits, number_size(type));
  }

 private:
  static std::size_t code_bytes_of(TestFormat format, std::int64_t rows, std::int64_t cols) {
    return format.bits != 0 ? static_cast<std::size_t>(rows * cols * format.bits / 8)
                            : tensor_bytes(format.dtype, rows, cols).value();
  }
  static std::size_t numbers_of(TestFormat format, std::int64_t rows, std::int64_t cols) {
    return format.bits == 0 ? 0 : static_cast<std::size_t>(rows * cols / format.group) * number_size(format.dtype);
  }

  float scale() {
    const std::uint32_t kind = random_() % 16;
    const float value = std::ldexp(1.0F + static_cast<float>(random_() % 1024) / 1024.0F, -8);
    if (kind == 0) return 0.0F;
    if (kind == 1) return std::ldexp(static_cast<float>(random_() % 1024), -24);
    return kind == 2 ? -value : value;
  }

  void fill_block(DType dtype, std::size_t at) {
    std::normal_distribution<float> normal(0.0F, 0.05F);
    if (number_type(dtype)) return put(bytes, at, dtype, normal(random_));
    if (dtype == DType::kQ6_K) return put(bytes, at + 208, DType::kF16, scale());
    put(bytes, at, DType::kF16, scale());
    if (TestFormat(dtype).affine()) put(bytes, at + 2, DType::kF16, scale());
  }
  static bool number_type(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16; }

  std::mt19937 random_;
};

// One weight: scale * code + bias, the same scale and bias for `group` columns.
struct TestWeight {
  std::int64_t code = 0;
  float scale = 0, bias = 0;
  int group = 32;
};

// Numbers of 6 bits: Q4_K's and Q5_K's, number g of the scales (0 .. 7) or of the minimums (8 .. 15).
inline int six_bits(const std::byte* packed, int g) {
  const auto at = [&](int i) { return static_cast<int>(packed[i]); };
  const bool minimum = g >= 8;
  const int i = g % 8;
  if (i < 4) return at(minimum ? i + 4 : i) & 63;
  const int nibble = minimum ? at(i + 4) >> 4 : at(i + 4) & 15;
  return nibble | at(minimum ? i : i - 4) >> 6 << 4;
}

inline TestWeight k_quant_at(DType dtype, const std::byte* block, int c) {
  const auto byte = [&](int i) { return static_cast<int>(block[i]); };
  if (dtype == DType::kQ6_K) {
    const int half = c / 128, j = c % 128 / 32, i = c % 32;
    const int nibble = byte(64 * half + 32 * (j % 2) + i) >> (j / 2 * 4) & 15;
    const int upper = byte(128 + 32 * half + i) >> (2 * j) & 3;
    const float scale = number_from(DType::kF16, block + 208) * static_cast<float>(static_cast<std::int8_t>(block[192 + c / 16]));
    return {(nibble | upper << 4) - 32, scale, 0, 16};
  }
  const int g = c / 32, i = c % 32;
  const bool five = dtype == DType::kQ5_K;
  const int nibble = byte((five ? 48 : 16) + g / 2 * 32 + i) >> (g % 2 * 4) & 15;
  const int fifth = five ? (byte(16 + i) >> g & 1) << 4 : 0;
  return {nibble | fifth, number_from(DType::kF16, block) * static_cast<float>(six_bits(block + 4, g)),
          -(number_from(DType::kF16, block + 2) * static_cast<float>(six_bits(block + 4, g + 8))), 32};
}

inline TestWeight affine_at(const Tensor& w, std::int64_t row, std::int64_t col) {
  const AffineGroups& affine = *w.affine;
  std::int64_t code = 0;
  for (std::int64_t bit = 0; bit < affine.bits; ++bit) {
    const std::int64_t at = col * affine.bits + bit;
    code |= (static_cast<std::int64_t>(w.row(row)[at / 8]) >> (at % 8) & 1) << bit;
  }
  const std::size_t at = static_cast<std::size_t>(row * (w.cols / affine.group) + col / affine.group) * number_size(affine.type);
  return {code, number_from(affine.type, &affine.scales[at]), number_from(affine.type, &affine.biases[at]), affine.group};
}

inline TestWeight weight_at(const Tensor& w, std::int64_t row, std::int64_t col) {
  if (w.affine) return affine_at(w, row, col);
  const DTypeInfo& info = dtype_info(w.dtype);
  const std::byte* const block = w.row(row) + col / info.block_elements * info.block_bytes;
  const auto c = static_cast<int>(col % info.block_elements);
  const auto half = [&](int at) { return number_from(DType::kF16, block + at); };
  const auto nibble = [&](int at) { return static_cast<int>(block[at + c % 16]) >> (c / 16 * 4) & 15; };
  const auto fifth = [&](int at) { return (static_cast<int>(block[at + c / 8]) >> (c % 8) & 1) * 16; };
  switch (w.dtype) {
    case DType::kQ4_0:
      return {nibble(2) - 8, half(0), 0};
    case DType::kQ4_1:
      return {nibble(4), half(0), half(2)};
    case DType::kQ5_0:
      return {nibble(6) + fifth(2) - 16, half(0), 0};
    case DType::kQ5_1:
      return {nibble(8) + fifth(4), half(0), half(2)};
    case DType::kQ8_0:
      return {static_cast<std::int8_t>(block[2 + c]), half(0), 0};
    default:
      return k_quant_at(w.dtype, block, c);
  }
}

// A row of weights as floats.
inline std::vector<float> floats_of_row(const Tensor& w, std::int64_t row) {
  std::vector<float> floats;
  for (std::int64_t c = 0; c < w.cols; ++c) {
    if (!w.affine && dtype_info(w.dtype).block_elements == 1) {
      floats.push_back(number_from(w.dtype, w.row(row) + c * dtype_info(w.dtype).block_bytes));
      continue;
    }
    const TestWeight weight = weight_at(w, row, c);
    const float product = weight.scale * static_cast<float>(weight.code);
    floats.push_back(w.affine || TestFormat(w.dtype).affine() ? product + weight.bias : product);
  }
  return floats;
}

}  // namespace linnet::cpu
