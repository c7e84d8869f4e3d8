// GGUF's blocks as affine groups, w = scale * code + bias: another way of writing the same numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weights/tensor.h"

namespace linnet {

inline constexpr std::int32_t kBlockGroup = 32;  // columns that share a scale and a bias

struct BlockGroup {
  std::array<std::uint8_t, kBlockGroup> codes;
  float scale = 0;
  float bias = 0;
};

// Bits of a code: 4, 5 or 8. Empty for plain numbers, and for Q6_K, whose groups are of 16.
std::optional<std::int32_t> block_group_bits(DType dtype);

// The groups of one block: block_elements / kBlockGroup of them to `out`. With a finite scale, scale * code + bias rounded to
// float32 is what dequantize_row() gives, bit for bit but for the sign of zero. Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: scale and bias
// are halves, unless the bias of a symmetric format is beyond their range (it becomes infinite when it is rounded to one).
void read_block_groups(DType dtype, const std::byte* block, BlockGroup* out);

}  // namespace linnet
