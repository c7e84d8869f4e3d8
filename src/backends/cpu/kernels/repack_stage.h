// Repacking in two steps, for every format: up to 256 columns of 16 rows are unpacked to a byte a code beside the bits of their
// scales, and these are laid out as groups of a panel. Plain C++; each file that includes it compiles it for its own instruction
// set. Blocks are as GGUF defines them (weights/dequantize.h), affine groups as MLX does (weights/tensor.h).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/panels.h"
#include "weights/half.h"

#if defined(__BMI2__) || defined(__F16C__)
#include <immintrin.h>
#endif

namespace linnet::cpu {
namespace {  // a copy in each file: none may end up in code that other machines run

constexpr int kStageColumns = 256;  // the largest block of a format, and whole groups of all
constexpr int kStageGroups = kStageColumns / 16;

struct alignas(64) RepackStage {
  std::byte codes[kPanelRows][kStageColumns];  // as panels have them: signed, unsigned, or nibbles
  std::uint32_t scales[kStageGroups][kPanelRows];
  std::uint32_t biases[kStageGroups][kPanelRows];
};

// Where one row's part of a stage goes.
struct StagedRow {
  std::byte* codes;
  std::uint32_t* scales;  // of group g at [g * kPanelRows]
  std::uint32_t* biases;

  void put(int group, std::uint32_t scale, std::uint32_t bias) const {
    scales[group * kPanelRows] = scale;
    biases[group * kPanelRows] = bias;
  }
};

// Not half.h's, whose one copy in the program must run everywhere.
inline float half_at(const std::byte* at) {
  std::uint16_t half;
  std::memcpy(&half, at, sizeof half);
#ifdef __F16C__
  return _cvtsh_ss(half);
#else
  return half_to_float(half);
#endif
}

template <class T>
T load_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Eight codes of kBits bits from kBits bytes.
template <int kBits>
inline std::uint64_t eight_codes(const std::byte* from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, kBits);
#ifdef __BMI2__
  return _pdep_u64(bits, 0x0101010101010101U * ((1U << kBits) - 1U));
#else
  std::uint64_t codes = 0;
  for (int i = 0; i < 8; ++i) codes |= (bits >> (i * kBits) & ((1U << kBits) - 1U)) << (i * 8);
  return codes;
#endif
}

// Codes a byte each, eight at a time.
inline constexpr std::uint64_t kEach = 0x0101010101010101U;

// 16 bytes: low nibbles are elements 0 .. 15, high ones 16 .. 31.
inline void stage_nibbles(const std::byte* from, std::byte* to) {
  for (int i = 0; i < 16; i += 8) {
    const auto bytes = load_as<std::uint64_t>(from + i);
    const std::uint64_t low = bytes & 15U * kEach, high = bytes >> 4 & 15U * kEach;
    std::memcpy(to + i, &low, 8);
    std::memcpy(to + 16 + i, &high, 8);
  }
}
// Nibbles of which element i has a fifth bit where bit i of the 32 is set; symmetric: 16 is taken off.
template <bool kAffine>
inline void stage_five_bits(const std::byte* nibbles, const std::byte* fifth_bits, std::byte* to) {
  stage_nibbles(nibbles, to);
  for (int i = 0; i < 32; i += 8) {
    const std::uint64_t fifths = eight_codes<1>(fifth_bits + i / 8);
    // A nibble less 16 is the nibble under four bits that are set.
    const auto codes = load_as<std::uint64_t>(to + i) | (kAffine ? fifths << 4 : (fifths ^ kEach) * 0xf0U);
    std::memcpy(to + i, &codes, 8);
  }
}

// Blocks of 32 of the formats with f16 scales.
template <DType kType>
inline void stage_block_32(const std::byte* block, int group, const StagedRow& to) {
  constexpr bool kAffine = kType == DType::kQ4_1 || kType == DType::kQ5_1;
  const std::byte* const after_scales = block + (kAffine ? 4 : 2);
  std::byte* const codes = to.codes + group * 32;
  to.put(group, load_as<std::uint16_t>(block), kAffine ? load_as<std::uint16_t>(block + 2) : 0U);
  if constexpr (kType == DType::kQ8_0) {
    std::memcpy(codes, after_scales, 32);
  } else if constexpr (kType == DType::kQ4_0 || kType == DType::kQ4_1) {
    stage_nibbles(after_scales, codes);
  } else {
    stage_five_bits<kAffine>(after_scales + 4, after_scales, codes);
  }
}

// Eight pairs of 6-bit numbers in 12 bytes of Q4_K and Q5_K, times the block's two scales.
inline void stage_pairs(const std::byte* block, const StagedRow& to) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  const auto low = load_as<std::uint32_t>(block + 4), middle = load_as<std::uint32_t>(block + 8),
             high = load_as<std::uint32_t>(block + 12);
  // Four numbers a dword, a byte each.
  const std::uint32_t scales[2] = {low & 0x3f3f3f3fU, (high & 0x0f0f0f0fU) | (low >> 2 & 0x30303030U)};
  const std::uint32_t minimums[2] = {middle & 0x3f3f3f3fU, (high >> 4 & 0x0f0f0f0fU) | (middle >> 2 & 0x30303030U)};
  for (int g = 0; g < 8; ++g) {
    const int shift = g % 4 * 8;
    const float d = scale * static_cast<float>(scales[g / 4] >> shift & 63U);
    const float m = minimum * static_cast<float>(minimums[g / 4] >> shift & 63U);
    to.put(g, std::bit_cast<std::uint32_t>(d), std::bit_cast<std::uint32_t>(-m));
  }
}

inline void stage_q4_k(const std::byte* block, const StagedRow& to) {
  stage_pairs(block, to);
  for (int pair = 0; pair < 4; ++pair) {
    const std::byte* const from = block + 16 + pair * 32;
    for (int i = 0; i < 32; ++i) {
      to.codes[pair * 64 + i] = from[i] & std::byte{15};
      to.codes[pair * 64 + 32 + i] = from[i] >> 4;
    }
  }
}

inline void stage_q5_k(const std::byte* block, const StagedRow& to) {
  stage_pairs(block, to);
  for (int pair = 0; pair < 4; ++pair) {
    const std::byte* const from = block + 48 + pair * 32;
    for (int i = 0; i < 32; ++i) {
      const std::byte fifths = block[16 + i] >> (2 * pair);
      to.codes[pair * 64 + i] = (from[i] & std::byte{15}) | ((fifths & std::byte{1}) << 4);
      to.codes[pair * 64 + 32 + i] = (from[i] >> 4) | ((fifths & std::byte{2}) << 3);
    }
  }
}

inline void stage_q6_k(const std::byte* block, const StagedRow& to) {
  const float scale = half_at(block + 208);
  for (int g = 0; g < 16; ++g)
    to.put(g, std::bit_cast<std::uint32_t>(scale * static_cast<float>(load_as<std::int8_t>(block + 192 + g))), 0);
  for (int half = 0; half < 2; ++half) {
    const std::byte* const low = block + 64 * half;
    const std::byte* const upper = block + 128 + 32 * half;
    std::byte* const codes = to.codes + 128 * half;
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 32; ++i) {
        const std::byte nibble = low[32 * (j % 2) + i] >> (j < 2 ? 0 : 4) & std::byte{15};
        const std::byte two = upper[i] >> (2 * j) & std::byte{3};
        codes[32 * j + i] = static_cast<std::byte>(static_cast<int>(nibble | two << 4) - 32);
      }
    }
  }
}

template <int kBits>
inline void stage_bits(const std::byte* from, int cols, std::byte* to) {
  for (int c = 0; c < cols; c += 8, from += kBits) {
    const std::uint64_t codes = eight_codes<kBits>(from);
    std::memcpy(to + c, &codes, 8);
  }
}

inline void stage_affine(const Tensor& source, std::int64_t row, std::int64_t first_col, int cols, const StagedRow& to) {
  const AffineGroups& affine = *source.affine;
  const std::byte* const from = source.data.data() + (row * source.cols + first_col) * affine.bits / 8;
  switch (affine.bits) {
    case 2:
      stage_bits<2>(from, cols, to.codes);
      break;
    case 3:
      stage_bits<3>(from, cols, to.codes);
      break;
    case 4:
      stage_bits<4>(from, cols, to.codes);
      break;
    case 5:
      stage_bits<5>(from, cols, to.codes);
      break;
    case 6:
      stage_bits<6>(from, cols, to.codes);
      break;
    default:
      std::memcpy(to.codes, from, static_cast<std::size_t>(cols));
      break;
  }
  const std::size_t size = affine.type == DType::kF32 ? 4 : 2;
  const auto first = static_cast<std::size_t>(row * (source.cols / affine.group) + first_col / affine.group);
  for (int g = 0; g < cols / affine.group; ++g) {
    std::uint32_t scale = 0, bias = 0;
    std::memcpy(&scale, affine.scales.data() + (first + static_cast<std::size_t>(g)) * size, size);
    std::memcpy(&bias, affine.biases.data() + (first + static_cast<std::size_t>(g)) * size, size);
    to.put(g, scale, bias);
  }
}

template <DType kType>
inline void stage_blocks_32(const std::byte* from, int cols, const StagedRow& to) {
  constexpr int kBytes = kType == DType::kQ4_0   ? 18
                         : kType == DType::kQ4_1 ? 20
                         : kType == DType::kQ5_0 ? 22
                         : kType == DType::kQ5_1 ? 24
                                                 : 34;
  for (int g = 0; g < cols / 32; ++g) stage_block_32<kType>(from + g * kBytes, g, to);
}

// One row's columns [first_col, first_col + cols).
inline void stage_row(const Tensor& source, std::int64_t row, std::int64_t first_col, int cols, const StagedRow& to) {
  if (source.affine) return stage_affine(source, row, first_col, cols, to);
  const DTypeInfo& info = dtype_info(source.dtype);
  const std::byte* const from = source.data.data() + (row * source.cols + first_col) / info.block_elements * info.block_bytes;
  switch (source.dtype) {
    case DType::kQ4_0:
      return stage_blocks_32<DType::kQ4_0>(from, cols, to);
    case DType::kQ4_1:
      return stage_blocks_32<DType::kQ4_1>(from, cols, to);
    case DType::kQ5_0:
      return stage_blocks_32<DType::kQ5_0>(from, cols, to);
    case DType::kQ5_1:
      return stage_blocks_32<DType::kQ5_1>(from, cols, to);
    case DType::kQ8_0:
      return stage_blocks_32<DType::kQ8_0>(from, cols, to);
    case DType::kQ4_K:
      return stage_q4_k(from, to);
    case DType::kQ5_K:
      return stage_q5_k(from, to);
    default:
      return stage_q6_k(from, to);
  }
}

// Codes of columns [column, column + 32) of all rows as a unit of a panel; 16 columns of byte codes if the group is that small.
inline void put_unit(const RepackStage& stage, PanelFormat format, int column, std::byte* to) {
  const int vectors = is_nibbles(format) || format.group == 16 ? 4 : 8;
  for (int i = 0; i < vectors; ++i) {
    for (int lane = 0; lane < kPanelRows; ++lane) {
      const std::byte* const from = stage.codes[lane] + column + 4 * i;
      auto four = load_as<std::uint32_t>(from);
      if (is_nibbles(format)) four |= load_as<std::uint32_t>(from + 16) << 4;
      std::memcpy(to + i * 64 + lane * 4, &four, 4);
    }
  }
}

inline void put_numbers(const std::uint32_t* from, DType type, std::byte* to) {
  if (type == DType::kF32) {
    std::memcpy(to, from, kPanelRows * 4);
    return;
  }
  for (int lane = 0; lane < kPanelRows; ++lane) {
    const auto half = static_cast<std::uint16_t>(from[lane]);
    std::memcpy(to + lane * 2, &half, 2);
  }
}

// Writes the groups of one panel that `cols` staged columns make; returns where the next go.
template <class PutUnit>
inline std::byte* put_groups(const RepackStage& stage, PanelFormat format, int cols, std::byte* to, const PutUnit& put) {
  const int unit = format.group < kUnit ? format.group : kUnit;
  for (int g = 0; g < cols / format.group; ++g) {
    for (int c = 0; c < format.group; c += unit) {
      put(stage, format, g * format.group + c, to);
      to += unit * kPanelRows / (is_nibbles(format) ? 2 : 1);
    }
    put_numbers(stage.scales[g], format.numbers, to);
    to += numbers_bytes(format);
    if (!format.affine) continue;
    put_numbers(stage.biases[g], format.numbers, to);
    to += numbers_bytes(format);
  }
  return to;
}

// Panels [panel_begin, panel_end) of a quantized source.
template <class PutUnit>
void repack_staged(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range, const PutUnit& put) {
  RepackStage stage;
  for (int p = range.begin; p < range.end; ++p) {
    const bool whole = std::int64_t{p + 1} * kPanelRows <= source.rows;
    if (!whole) std::memset(&stage, 0, sizeof stage);  // lanes without a row stay zero
    std::byte* const panel = into.panel(place.first_panel + p * place.panel_step);
    std::byte* to = panel;
    for (std::int64_t c = 0; c < source.cols; c += kStageColumns) {
      const int cols = source.cols - c < kStageColumns ? static_cast<int>(source.cols - c) : kStageColumns;
      for (int lane = 0; lane < kPanelRows && std::int64_t{p} * kPanelRows + lane < source.rows; ++lane) {
        stage_row(source, std::int64_t{p} * kPanelRows + lane, c, cols,
                  {stage.codes[lane], &stage.scales[0][lane], &stage.biases[0][lane]});
      }
      to = put_groups(stage, into.format, cols, to, put);
    }
    std::memset(to, 0, into.panel_bytes - static_cast<std::size_t>(to - panel));
  }
}

}  // namespace
}  // namespace linnet::cpu
