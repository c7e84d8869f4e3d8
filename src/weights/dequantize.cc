#include "weights/dequantize.h"

#include <cstring>

#include "base/check.h"
#include "weights/gguf_blocks.h"
#include "weights/half.h"

namespace linnet {
namespace {

// Each function below takes one block and writes its elements: 32 of the first five formats, 256 of the last three.

// scale, 16 bytes of codes: element i in the low nibble of byte i, element i + 16 in its high nibble.
void block_q4_0(const std::byte* block, float* out) {
  const float scale = load_half(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(low_nibble(block[2 + i]) - 8) * scale;
    out[i + 16] = static_cast<float>(high_nibble(block[2 + i]) - 8) * scale;
  }
}

// scale, minimum, codes as in Q4_0.
void block_q4_1(const std::byte* block, float* out) {
  const float scale = load_half(block);
  const float minimum = load_half(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(low_nibble(block[4 + i])) * scale + minimum;
    out[i + 16] = static_cast<float>(high_nibble(block[4 + i])) * scale + minimum;
  }
}

// scale, fifth bits, codes as in Q4_0.
void block_q5_0(const std::byte* block, float* out) {
  const float scale = load_half(block);
  const auto bits = load_little<std::uint32_t>(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>((low_nibble(block[6 + i]) | fifth_bit(bits, i)) - 16) * scale;
    out[i + 16] = static_cast<float>((high_nibble(block[6 + i]) | fifth_bit(bits, i + 16)) - 16) * scale;
  }
}

// scale, minimum, fifth bits, codes as in Q4_0.
void block_q5_1(const std::byte* block, float* out) {
  const float scale = load_half(block);
  const float minimum = load_half(block + 2);
  const auto bits = load_little<std::uint32_t>(block + 4);
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<float>(low_nibble(block[8 + i]) | fifth_bit(bits, i)) * scale + minimum;
    out[i + 16] = static_cast<float>(high_nibble(block[8 + i]) | fifth_bit(bits, i + 16)) * scale + minimum;
  }
}

// scale, 32 signed bytes.
void block_q8_0(const std::byte* block, float* out) {
  const float scale = load_half(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(load_little<std::int8_t>(block + 2 + i)) * scale;
}

// scale of scales, scale of minimums, 12 bytes of pairs for 8 groups of 32, 128 bytes of codes: groups 2j and 2j + 1 are the low
// and high nibbles of bytes 32j .. 32j + 31.
void block_q4_k(const std::byte* block, float* out) {
  const float scale = load_half(block);
  const float minimum = load_half(block + 2);
  const std::byte* codes = block + 16;
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMinimum pair = six_bit_pair(block + 4, group);
    const float d = scale * static_cast<float>(pair.scale);
    const float m = minimum * static_cast<float>(pair.minimum);
    for (int i = 0; i < 32; ++i) {
      const std::byte b = codes[32 * (group / 2) + i];
      out[32 * group + i] = d * static_cast<float>(group % 2 == 0 ? low_nibble(b) : high_nibble(b)) - m;
    }
  }
}

// As Q4_K, with the codes' fifth bits between pairs and codes: bit g of byte i is for element i of group g.
void block_q5_k(const std::byte* block, float* out) {
  const float scale = load_half(block);
  const float minimum = load_half(block + 2);
  const std::byte* fifths = block + 16;
  const std::byte* codes = block + 48;
  for (int group = 0; group < 8; ++group) {
    const ScaleAndMinimum pair = six_bit_pair(block + 4, group);
    const float d = scale * static_cast<float>(pair.scale);
    const float m = minimum * static_cast<float>(pair.minimum);
    for (int i = 0; i < 32; ++i) {
      const std::byte b = codes[32 * (group / 2) + i];
      const int fifth = fifth_bit(static_cast<std::uint32_t>(fifths[i]) >> group, 0);
      out[32 * group + i] = d * static_cast<float>((group % 2 == 0 ? low_nibble(b) : high_nibble(b)) | fifth) - m;
    }
  }
}

// 128 bytes of low nibbles, 64 bytes of upper pairs of bits, 16 signed scales of groups of 16, scale of scales. Per half of 128:
// element 32j + i has its nibble in byte i + 32 (j % 2), low for j < 2, and its upper bits in byte i, at 2j.
void block_q6_k(const std::byte* block, float* out) {
  const float scale = load_half(block + 208);
  for (int element = 0; element < 256; ++element) {
    const int half = element / 128;
    const int j = element % 128 / 32;
    const int i = element % 32;
    const std::byte low = block[64 * half + 32 * (j % 2) + i];
    const int upper = static_cast<int>(block[128 + 32 * half + i] >> (2 * j)) & 3;
    const int code = ((j < 2 ? low_nibble(low) : high_nibble(low)) | (upper << 4)) - 32;
    const auto group_scale = load_little<std::int8_t>(block + 192 + element / 16);
    out[element] = scale * static_cast<float>(group_scale) * static_cast<float>(code);
  }
}

template <class Block>
void each_block(DType dtype, const std::byte* row, std::int64_t cols, float* out, Block block) {
  const DTypeInfo& info = dtype_info(dtype);
  for (std::int64_t i = 0; i < cols / info.block_elements; ++i) block(row + i * info.block_bytes, out + i * info.block_elements);
}

}  // namespace

void dequantize_row(DType dtype, const std::byte* row, std::int64_t cols, float* out) {
  CHECK(cols >= 0 && cols % dtype_info(dtype).block_elements == 0);
  switch (dtype) {
    case DType::kF32:
      if (cols > 0) std::memcpy(out, row, static_cast<std::size_t>(cols) * sizeof(float));
      return;
    case DType::kF16:
      return each_block(dtype, row, cols, out, [](const std::byte* at, float* to) { *to = load_half(at); });
    case DType::kBF16:
      return each_block(dtype, row, cols, out,
                        [](const std::byte* at, float* to) { *to = bfloat16_to_float(load_little<std::uint16_t>(at)); });
    case DType::kQ4_0:
      return each_block(dtype, row, cols, out, block_q4_0);
    case DType::kQ4_1:
      return each_block(dtype, row, cols, out, block_q4_1);
    case DType::kQ5_0:
      return each_block(dtype, row, cols, out, block_q5_0);
    case DType::kQ5_1:
      return each_block(dtype, row, cols, out, block_q5_1);
    case DType::kQ8_0:
      return each_block(dtype, row, cols, out, block_q8_0);
    case DType::kQ4_K:
      return each_block(dtype, row, cols, out, block_q4_k);
    case DType::kQ5_K:
      return each_block(dtype, row, cols, out, block_q5_k);
    case DType::kQ6_K:
      return each_block(dtype, row, cols, out, block_q6_k);
  }
  CHECK_MSG(false, "unknown DType");
}

}  // namespace linnet
