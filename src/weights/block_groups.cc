#include "weights/block_groups.h"

#include <cstring>

#include "base/check.h"
#include "weights/gguf_blocks.h"

namespace linnet {
namespace {

// Codes in 16 bytes: element i in the low nibble of byte i, element i + 16 in its high nibble; the fifth bits in 32 bits.
void read_nibbles(const std::byte* nibbles, std::uint32_t fifths, BlockGroup& group) {
  for (int i = 0; i < 16; ++i) {
    const auto at = static_cast<std::size_t>(i);
    group.codes[at] = static_cast<std::uint8_t>(low_nibble(nibbles[i]) | fifth_bit(fifths, i));
    group.codes[at + 16] = static_cast<std::uint8_t>(high_nibble(nibbles[i]) | fifth_bit(fifths, i + 16));
  }
}

void read_q8_0(const std::byte* block, BlockGroup& group) {
  group.scale = load_half(block);
  group.bias = -128 * group.scale;
  for (std::size_t i = 0; i < group.codes.size(); ++i)
    group.codes[i] = static_cast<std::uint8_t>(static_cast<int>(load_little<std::int8_t>(block + 2 + i)) + 128);
}

// Q4_K, and Q5_K where `fifths` is not null.
void read_k(const std::byte* block, const std::byte* fifths, const std::byte* codes, BlockGroup* out) {
  const float scale = load_half(block);
  const float minimum = load_half(block + 2);
  for (int g = 0; g < 8; ++g) {
    BlockGroup& group = out[g];
    const ScaleAndMinimum pair = six_bit_pair(block + 4, g);
    group.scale = scale * static_cast<float>(pair.scale);
    group.bias = -(minimum * static_cast<float>(pair.minimum));
    for (int i = 0; i < kBlockGroup; ++i) {
      const std::byte b = codes[kBlockGroup * (g / 2) + i];
      const int fifth = fifths == nullptr ? 0 : fifth_bit(static_cast<std::uint32_t>(fifths[i]) >> g, 0);
      group.codes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>((g % 2 == 0 ? low_nibble(b) : high_nibble(b)) | fifth);
    }
  }
}

}  // namespace

std::optional<std::int32_t> block_group_bits(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ4_K:
      return 4;
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5_K:
      return 5;
    case DType::kQ8_0:
      return 8;
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ6_K:
      return std::nullopt;
  }
  CHECK_MSG(false, "unknown DType");
}

void read_block_groups(DType dtype, const std::byte* block, BlockGroup* out) {
  out->scale = load_half(block);
  switch (dtype) {
    case DType::kQ4_0:
      out->bias = -8 * out->scale;
      return read_nibbles(block + 2, 0, *out);
    case DType::kQ4_1:
      out->bias = load_half(block + 2);
      return read_nibbles(block + 4, 0, *out);
    case DType::kQ5_0:
      out->bias = -16 * out->scale;
      return read_nibbles(block + 6, load_little<std::uint32_t>(block + 2), *out);
    case DType::kQ5_1:
      out->bias = load_half(block + 2);
      return read_nibbles(block + 8, load_little<std::uint32_t>(block + 4), *out);
    case DType::kQ8_0:
      return read_q8_0(block, *out);
    case DType::kQ4_K:
      return read_k(block, nullptr, block + 16, out);
    case DType::kQ5_K:
      return read_k(block, block + 16, block + 48, out);
    default:
      CHECK_MSG(false, "a format without groups of 32");
  }
}

}  // namespace linnet
