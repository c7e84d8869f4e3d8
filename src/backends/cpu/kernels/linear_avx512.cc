// Quantized weights times rounded rows with AVX-512 VNNI: one to four rows of a block at once, one panel at a time. VPDPBUSD
// neither wraps nor saturates on these sums. Bytes are made unsigned by adding 128, symmetric nibbles are 8 too large: both are
// taken off again with the negated sum of x, as integers.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
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

template <PanelFormat kFormat, int kRows>
[[gnu::always_inline]] inline void start(GroupSums<kRows>& s, const BlockRows& x, std::ptrdiff_t group) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    s.high[r] = s.low[r] = _mm512_setzero_si512();
    const std::ptrdiff_t at = group * x.block_rows + r;
    if constexpr (kFormat == PanelFormat::kNibblesSymmetric) s.low[r] = _mm512_slli_epi32(_mm512_set1_epi32(x.negated[at]), 3);
    if constexpr (!is_nibbles(kFormat)) s.high[r] = _mm512_set1_epi32(x.negated[at]);  // counts 128 times
  }
}

// Four columns of 16 lanes, `column` of the group.
template <int kRows>
[[gnu::always_inline]] inline void multiply(GroupSums<kRows>& s, __m512i codes, const std::byte* x, std::ptrdiff_t half,
                                            int column) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    s.high[r] = _mm512_dpbusd_epi32(s.high[r], codes, quad(x + r * 32 + column));
    s.low[r] = _mm512_dpbusd_epi32(s.low[r], codes, quad(x + half + r * 32 + column));
  }
}

template <PanelFormat kFormat, int kRows>
[[gnu::always_inline]] inline void multiply_group(GroupSums<kRows>& s, const std::byte* panel, const std::byte* x,
                                                  std::ptrdiff_t half) {
  if constexpr (is_nibbles(kFormat)) {
    const __m512i low_nibble = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512i v = _mm512_loadu_si512(panel + i * 64);
      multiply(s, _mm512_and_si512(v, low_nibble), x, half, 4 * i);
      multiply(s, _mm512_and_si512(_mm512_srli_epi16(v, 4), low_nibble), x, half, 16 + 4 * i);
    }
  } else {
    const __m512i flip = _mm512_set1_epi8(-128);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) multiply(s, _mm512_xor_si512(_mm512_loadu_si512(panel + i * 64), flip), x, half, 4 * i);
  }
}

// sums[r][0 .. 15] of one panel.
template <PanelFormat kFormat, int kRows>
[[gnu::always_inline]] inline void run_panel(const std::byte* panel, const BlockRows& x, int groups, float* sums) {
  constexpr std::ptrdiff_t kBytes = panel_unit_bytes(kFormat);
  constexpr std::ptrdiff_t kScales = is_nibbles(kFormat) ? 256 : 512;
  const std::ptrdiff_t half = x.block_rows * 32;
  __m512 acc[kRows];
  for (auto& a : acc) a = _mm512_setzero_ps();
  for (int g = 0; g < groups; ++g, panel += kBytes) {
#pragma GCC unroll 9
    for (std::ptrdiff_t z = 0; z < kBytes; z += 64)
      _mm_prefetch(reinterpret_cast<const char*>(panel) + kPrefetchBytes + z, _MM_HINT_T0);
    GroupSums<kRows> s;
    start<kFormat>(s, x, g);
    multiply_group<kFormat>(s, panel, x.codes + g * 2 * half, half);
    const __m512 scale = load_half(panel + kScales);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(s.high[r], 7), s.low[r]));
      acc[r] = _mm512_fmadd_ps(sum, scale, acc[r]);
      if constexpr (is_affine(kFormat)) {
        const __m512 x_sum = _mm512_set1_ps(x.sums[g * x.block_rows + r]);
        acc[r] = _mm512_fmadd_ps(load_half(panel + kScales + 32), x_sum, acc[r]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) _mm512_storeu_ps(sums + r * kPanelRows, acc[r]);
}

// Two panels of a block of rows, finished together.
template <PanelFormat kFormat>
void run_block(const PanelMatrix& weights, const BlockRows& x, int rows, int groups, int panel, int panels, float* sums) {
  for (int i = 0; i < panels; ++i) {
    const std::byte* const data = weights.panel(panel + i);
    float* const out = sums + i * 4 * kPanelRows;
    switch (rows) {
      case 1:
        run_panel<kFormat, 1>(data, x, groups, out);
        break;
      case 2:
        run_panel<kFormat, 2>(data, x, groups, out);
        break;
      case 3:
        run_panel<kFormat, 3>(data, x, groups, out);
        break;
      default:
        run_panel<kFormat, 4>(data, x, groups, out);
        break;
    }
  }
}

template <PanelFormat kFormat>
void run(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  const ActivationBlocks& bytes = x.bytes;
  alignas(64) float sums[2 * 4 * kPanelRows];
  const std::ptrdiff_t stride = std::ptrdiff_t{x.groups} * bytes.block_rows;
  for (int p = share.panel_begin; p < share.panel_end; p += 2) {
    const int panels = share.panel_end - p < 2 ? 1 : 2;
    for (int b = 0; b < bytes.blocks; ++b) {
      // A block has any number of rows (tiled kernels read the same form); four at a time here.
      const int begin = b * bytes.block_rows;
      const int end = begin + bytes.block_rows < x.rows ? begin + bytes.block_rows : x.rows;
      for (int row = begin; row < end; row += 4) {
        const int rows = end - row < 4 ? end - row : 4;
        const std::ptrdiff_t r = row - begin;
        const BlockRows block{bytes.codes + b * stride * 64 + r * 32, bytes.sums + b * stride + r, bytes.negated + b * stride + r,
                              bytes.block_rows};
        run_block<kFormat>(weights, block, rows, x.groups, p, panels, sums);
        finish({&out, x.scales, weights.rows, p, panels}, {sums, sums + 4 * kPanelRows, kPanelRows}, row, rows);
      }
    }
  }
}

}  // namespace

void linear_quantized_avx512(const PanelMatrix& weights, const Activations& x, const LinearOutput& out,
                             const LinearShare& share) {
  switch (weights.format) {
    case PanelFormat::kNibblesSymmetric:
      return run<PanelFormat::kNibblesSymmetric>(weights, x, out, share);
    case PanelFormat::kNibblesAffine:
      return run<PanelFormat::kNibblesAffine>(weights, x, out, share);
    case PanelFormat::kBytesSymmetric:
      return run<PanelFormat::kBytesSymmetric>(weights, x, out, share);
    case PanelFormat::kBytesAffine:
      return run<PanelFormat::kBytesAffine>(weights, x, out, share);
    default:
      return;
  }
}

}  // namespace linnet::cpu
