// Quantized weights times rounded rows with AVX-512 VNNI: one to four rows of a block at once, one panel at a time. VPDPBUSD
// neither wraps nor saturates on these sums. Symmetric bytes are made unsigned by adding 128, symmetric nibbles are 8 too large:
// both are taken off again with the negated sum of x, as integers.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/panel_shapes.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

constexpr int kPrefetchBytes = 2560;

[[gnu::always_inline]] inline __m512i quad(const std::byte* codes) {
  std::int32_t four;
  __builtin_memcpy(&four, codes, 4);
  return _mm512_set1_epi32(four);
}

// Rounded rows of one block: kRows of its block_rows.
struct BlockRows {
  const std::byte* codes;
  const float* scales;
  const float* sums;
  const std::int32_t* negated;
  std::ptrdiff_t block_rows;
};

// Sums of one group for kRows rows.
template <int kRows>
struct GroupSums {
  __m512i high[kRows];
  __m512i low[kRows];
};

// Negated sums of x over a group, which symmetric codes need; such groups have 16 or 32 columns.
template <int kGroup>
[[gnu::always_inline]] inline __m512i negated_sum(const BlockRows& x, std::ptrdiff_t group, int row) {
  if constexpr (kGroup == 16) return _mm512_set1_epi32(x.negated[group * x.block_rows + row]);
  const std::int32_t* const front = x.negated + 2 * group * x.block_rows + row;
  return _mm512_add_epi32(_mm512_set1_epi32(*front), _mm512_set1_epi32(front[x.block_rows]));
}

template <PanelFormat kShape, int kRows>
[[gnu::always_inline]] inline void start(GroupSums<kRows>& s, const BlockRows& x, std::ptrdiff_t group) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    s.high[r] = s.low[r] = _mm512_setzero_si512();
    if constexpr (kShape.affine) continue;
    const __m512i negated = negated_sum<kShape.group>(x, group, r);
    s.low[r] = _mm512_slli_epi32(negated, is_nibbles(kShape) ? 3 : 7);
  }
}

// Four columns of 16 lanes, `column` of the unit.
template <int kRows>
[[gnu::always_inline]] inline void multiply(GroupSums<kRows>& s, __m512i codes, const std::byte* x, std::ptrdiff_t half,
                                            int column) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    s.high[r] = _mm512_dpbusd_epi32(s.high[r], codes, quad(x + r * 32 + column));
    s.low[r] = _mm512_dpbusd_epi32(s.low[r], codes, quad(x + half + r * 32 + column));
  }
}

// A unit of codes, or 16 columns of one.
template <PanelFormat kShape, int kRows>
[[gnu::always_inline]] inline void multiply_unit(GroupSums<kRows>& s, const std::byte* codes, const std::byte* x,
                                                 std::ptrdiff_t half) {
  if constexpr (is_nibbles(kShape)) {
    const __m512i low_nibble = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i v = _mm512_loadu_si512(codes + i * 64);
      multiply(s, _mm512_and_si512(v, low_nibble), x, half, 4 * i);
      multiply(s, _mm512_and_si512(_mm512_srli_epi16(v, 4), low_nibble), x, half, 16 + 4 * i);
    }
  } else {
    const __m512i flip = _mm512_set1_epi8(-128);
    constexpr int kVectors = kShape.group == 16 ? 4 : 8;
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      const __m512i v = _mm512_loadu_si512(codes + i * 64);
      multiply(s, kShape.affine ? v : _mm512_xor_si512(v, flip), x, half, 4 * i);
    }
  }
}

// The integers of one group.
template <PanelFormat kShape, int kRows>
[[gnu::always_inline]] inline void multiply_group(GroupSums<kRows>& s, const std::byte* codes, const BlockRows& x,
                                                  std::ptrdiff_t group) {
  const std::ptrdiff_t half = x.block_rows * 32;
  start<kShape>(s, x, group);
  if constexpr (kShape.group == 16) {
    multiply_unit<kShape>(s, codes, x.codes + group / 2 * 2 * half + group % 2 * 16, half);
  } else {
    constexpr int kUnits = kShape.group / kUnit;
    constexpr std::ptrdiff_t kBytes = code_bytes(kShape) / kUnits;
    for (int u = 0; u < kUnits; ++u)
      multiply_unit<kShape>(s, codes + u * kBytes, x.codes + (group * kUnits + u) * 2 * half, half);
  }
}

template <PanelFormat kShape>
[[gnu::always_inline]] inline float x_sum(const BlockRows& x, std::ptrdiff_t group, int row) {
  constexpr int kUnits = kShape.group / kUnit;
  const float* const sums = x.sums + group * kUnits * x.block_rows + row;
  float sum = sums[0];
  for (int u = 1; u < kUnits; ++u) sum += sums[u * x.block_rows];
  return sum;
}

// sums[r][0 .. 15] of one panel.
template <PanelFormat kShape, int kRows>
[[gnu::always_inline]] inline void run_panel(const PanelMatrix& weights, int index, const BlockRows& x, float* sums) {
  constexpr std::ptrdiff_t kCodes = code_bytes(kShape);
  const std::byte* panel = weights.panel(index);
  const DType numbers = weights.format.numbers;
  const std::ptrdiff_t step = panel_group_bytes(weights.format);
  constexpr int kSegmentGroups = kSegmentUnits * kUnit / kShape.group;
  __m512 acc[kRows], total[kRows];
  for (int r = 0; r < kRows; ++r) acc[r] = total[r] = _mm512_setzero_ps();
  for (int g = 0; g < weights.groups; ++g, panel += step) {
    for (std::ptrdiff_t z = 0; z < step; z += 64)
      _mm_prefetch(reinterpret_cast<const char*>(panel) + kPrefetchBytes + z, _MM_HINT_T0);
    GroupSums<kRows> s;
    multiply_group<kShape>(s, panel, x, g);
    const __m512 scale = load_numbers(numbers, panel + kCodes);
    __m512 bias = _mm512_setzero_ps();
    if constexpr (kShape.affine) bias = load_numbers(numbers, panel + kCodes + numbers_bytes(weights.format));
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(s.high[r], 8), s.low[r]));
      acc[r] = _mm512_fmadd_ps(sum, scale, acc[r]);
      if constexpr (kShape.affine) acc[r] = _mm512_fmadd_ps(bias, _mm512_set1_ps(x_sum<kShape>(x, g, r)), acc[r]);
    }
    if ((g + 1) % kSegmentGroups != 0 && g + 1 < weights.groups) continue;
    const float* const scales = x.scales + g / kSegmentGroups * x.block_rows;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      total[r] = _mm512_fmadd_ps(acc[r], _mm512_set1_ps(scales[r]), total[r]);
      acc[r] = _mm512_setzero_ps();
    }
  }
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(sums + r * kPanelRows, total[r]);
}

// Two panels of a block of rows, finished together.
template <PanelFormat kShape>
void run_block(const PanelMatrix& weights, const BlockRows& x, int rows, int panel, int panels, float* sums) {
  for (int i = 0; i < panels; ++i) {
    float* const out = sums + i * 4 * kPanelRows;
    switch (rows) {
      case 1:
        run_panel<kShape, 1>(weights, panel + i, x, out);
        break;
      case 2:
        run_panel<kShape, 2>(weights, panel + i, x, out);
        break;
      case 3:
        run_panel<kShape, 3>(weights, panel + i, x, out);
        break;
      default:
        run_panel<kShape, 4>(weights, panel + i, x, out);
        break;
    }
  }
}

template <PanelFormat kShape>
void run(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  const ActivationBlocks& bytes = x.bytes;
  alignas(64) float sums[2 * 4 * kPanelRows];
  const std::ptrdiff_t stride = std::ptrdiff_t{x.units} * bytes.block_rows;
  for (int p = share.panel_begin; p < share.panel_end; p += 2) {
    const int panels = share.panel_end - p < 2 ? 1 : 2;
    for (int b = 0; b < bytes.blocks; ++b) {
      // A block has any number of rows (tiled kernels read the same form); four at a time here.
      const int begin = b * bytes.block_rows;
      const int end = begin + bytes.block_rows < x.rows ? begin + bytes.block_rows : x.rows;
      for (int row = begin; row < end; row += 4) {
        const int rows = end - row < 4 ? end - row : 4;
        const std::ptrdiff_t r = row - begin;
        const BlockRows block{bytes.codes + b * stride * 64 + r * 32,
                              bytes.scales + std::ptrdiff_t{b} * x.segments() * bytes.block_rows + r, bytes.sums + b * stride + r,
                              bytes.negated + 2 * b * stride + r, bytes.block_rows};
        run_block<kShape>(weights, block, rows, p, panels, sums);
        finish({&out, &weights, p, panels}, {sums, sums + 4 * kPanelRows, kPanelRows}, row, rows);
      }
    }
  }
}

}  // namespace

void linear_quantized_avx512(const PanelMatrix& weights, const Activations& x, const LinearOutput& out,
                             const LinearShare& share) {
  with_panel_shape(weights.format, [&]<PanelFormat kShape>() { run<kShape>(weights, x, out, share); });
}

}  // namespace linnet::cpu
