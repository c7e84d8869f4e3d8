// A weight matrix as a view of a file's bytes, and the formats that its numbers come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/check.h"

namespace linnet {

// Formats as GGUF defines them: numbers, or blocks of numbers along a row that share scales.
enum class DType : std::uint8_t { kF32, kF16, kBF16, kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ5_K, kQ6_K };

// MLX's affine quantization, where scales lie beside the codes: w = scale * code + bias, a scale and a bias for each group of
// columns.
struct AffineGroups {
  std::int32_t bits = 0;              // of a code: 2, 3, 4, 5, 6 or 8
  std::int32_t group = 0;             // columns that share a scale: 32, 64 or 128
  DType type = DType::kF32;           // of scales and biases: F32, F16 or BF16
  std::span<const std::byte> scales;  // [rows, cols / group]
  std::span<const std::byte> biases;  // [rows, cols / group]
};

struct DTypeInfo {
  DType dtype{};
  std::string_view name;            // "Q4_0"
  std::int32_t block_elements = 0;  // 1 for plain numbers
  std::int32_t block_bytes = 0;
  std::uint32_t gguf_type = 0;  // the number that GGUF files have for it
};

// All of them, in the order of DType.
std::span<const DTypeInfo> dtypes();

const DTypeInfo& dtype_info(DType dtype);
inline std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }
std::optional<DType> dtype_from_gguf(std::uint32_t gguf_type);

// Bytes of `rows` rows of `cols` elements. Empty if a count is negative, a row ends inside a block, or the product passes 2^63
// - 1.
std::optional<std::size_t> tensor_bytes(DType dtype, std::int64_t rows, std::int64_t cols);

// Row-major [rows, cols]; a vector has rows = 1. Does not own `data`: valid as long as the file it came from.
// Invariant, for tensors from files: data.size() == tensor_bytes(dtype, rows, cols), or with `affine` rows * cols * bits / 8.
// Nothing is promised about the numbers inside.
struct Tensor {
  DType dtype = DType::kF32;  // means nothing where `affine` is present
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::span<const std::byte> data;     // with `affine`: codes, each row one little-endian stream of bits, lowest first
  std::optional<AffineGroups> affine;  // of matrices in MLX's folders

  std::size_t row_bytes() const {
    if (affine) return static_cast<std::size_t>(cols * affine->bits / 8);
    const DTypeInfo& info = dtype_info(dtype);
    return static_cast<std::size_t>(cols / info.block_elements) * static_cast<std::size_t>(info.block_bytes);
  }
  const std::byte* row(std::int64_t i) const {
    CHECK(i >= 0 && i < rows);
    return data.data() + static_cast<std::size_t>(i) * row_bytes();
  }
};

}  // namespace linnet
