#include "weights/tensor.h"

#include <array>

namespace linnet {
namespace {

constexpr std::array kDTypes = {
    DTypeInfo{DType::kF32, "F32", 1, 4, 0},        DTypeInfo{DType::kF16, "F16", 1, 2, 1},
    DTypeInfo{DType::kBF16, "BF16", 1, 2, 30},     DTypeInfo{DType::kQ4_0, "Q4_0", 32, 18, 2},
    DTypeInfo{DType::kQ4_1, "Q4_1", 32, 20, 3},    DTypeInfo{DType::kQ5_0, "Q5_0", 32, 22, 6},
    DTypeInfo{DType::kQ5_1, "Q5_1", 32, 24, 7},    DTypeInfo{DType::kQ8_0, "Q8_0", 32, 34, 8},
    DTypeInfo{DType::kQ4_K, "Q4_K", 256, 144, 12}, DTypeInfo{DType::kQ5_K, "Q5_K", 256, 176, 13},
    DTypeInfo{DType::kQ6_K, "Q6_K", 256, 210, 14},
};

}  // namespace

std::span<const DTypeInfo> dtypes() { return kDTypes; }

const DTypeInfo& dtype_info(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  CHECK(index < kDTypes.size());
  return kDTypes[index];
}

std::optional<DType> dtype_from_gguf(std::uint32_t gguf_type) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.gguf_type == gguf_type) return info.dtype;
  }
  return std::nullopt;
}

std::optional<std::size_t> tensor_bytes(DType dtype, std::int64_t rows, std::int64_t cols) {
  const DTypeInfo& info = dtype_info(dtype);
  if (rows < 0 || cols < 0 || cols % info.block_elements != 0) return std::nullopt;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(cols / info.block_elements, std::int64_t{info.block_bytes}, &bytes)) return std::nullopt;
  if (__builtin_mul_overflow(bytes, rows, &bytes)) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

}  // namespace linnet
