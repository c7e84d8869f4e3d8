// Quantized weights times rounded rows with AVX2: VPMADDWD of codes widened to words and the integers of 16 bits whole, so
// nothing saturates; the integers are those of the other sets. Up to four rows at once; a row's columns are put in the order in
// which words of codes come: 0, 2 and 1, 3 of each four.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/panel_shapes.h"
#include "backends/cpu/kernels/simd_avx2.h"

namespace linnet::cpu {
namespace {

constexpr int kRowsAtOnce = 4;
constexpr int kPanelsAtOnce = 32;  // that meet some rows before the next rows are put in order
constexpr int kPrefetchBytes = 2560;
constexpr int kUnitBytes = kUnit * 2;  // of ordered words

static_assert(std::size_t{kColsMax + 4 * kGroupMax} * 2 <= kLinearScratchBytes);

// Rows in order: [unit][row][16 dwords].
struct OrderedRows {
  const std::byte* words;
  const float* scales;          // of the block, from the first of the rows
  const float* sums;            // likewise
  const std::int32_t* negated;  // likewise
  std::ptrdiff_t block_rows;
};

// The words of 16 columns.
[[gnu::always_inline]] inline __m256i ordered(const std::byte* high, const std::byte* low) {
  const __m256i upper = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(high)));
  const __m256i lower = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low)));
  const __m256i words = _mm256_add_epi16(_mm256_slli_epi16(upper, 8), lower);
  return _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, _MM_SHUFFLE(3, 1, 2, 0)), _MM_SHUFFLE(3, 1, 2, 0));
}

OrderedRows order_rows(const Activations& x, int first, int rows, std::byte* scratch) {
  const ActivationBlocks& bytes = x.bytes;
  const std::ptrdiff_t step = bytes.block_rows;
  const std::ptrdiff_t block = first / step * x.units * step, r = first % step;
  for (std::ptrdiff_t u = 0; u < x.units; ++u) {
    for (int i = 0; i < rows; ++i) {
      const std::byte* const high = bytes.codes + (2 * (block + u * step) + r + i) * 32;
      const std::byte* const low = high + step * 32;
      auto* const to = reinterpret_cast<__m256i*>(scratch + (u * rows + i) * kUnitBytes);
      _mm256_storeu_si256(to, ordered(high, low));
      _mm256_storeu_si256(to + 1, ordered(high + 16, low + 16));
    }
  }
  return {scratch, bytes.scales + first / step * x.segments() * step + r, bytes.sums + block + r, bytes.negated + 2 * block + r,
          step};
}

// Four columns of 8 lanes as words: columns 0 and 2 beside 1 and 3; `pair` of the unit's eight.
template <int kRows>
[[gnu::always_inline]] inline void multiply(__m256i (&sums)[kRows], __m256i even, __m256i odd, const std::byte* x, int pair) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    std::int32_t first, second;
    __builtin_memcpy(&first, x + r * kUnitBytes + pair * 8, 4);
    __builtin_memcpy(&second, x + r * kUnitBytes + pair * 8 + 4, 4);
    sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(even, _mm256_set1_epi32(first)));
    sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(odd, _mm256_set1_epi32(second)));
  }
}

// A unit of 8 lanes, or 16 columns of one.
template <PanelFormat kShape, int kRows>
[[gnu::always_inline]] inline void multiply_unit(__m256i (&sums)[kRows], const std::byte* codes, const std::byte* x) {
  constexpr int kVectors = is_nibbles(kShape) || kShape.group == 16 ? 4 : 8;
#pragma GCC unroll 8
  for (int i = 0; i < kVectors; ++i) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + i * 64));
    if constexpr (is_nibbles(kShape)) {
      const __m256i low = _mm256_set1_epi16(15);
      multiply(sums, _mm256_and_si256(v, low), _mm256_and_si256(_mm256_srli_epi16(v, 8), low), x, i);
      multiply(sums, _mm256_and_si256(_mm256_srli_epi16(v, 4), low), _mm256_srli_epi16(v, 12), x, 4 + i);
    } else if constexpr (kShape.affine) {
      multiply(sums, _mm256_and_si256(v, _mm256_set1_epi16(255)), _mm256_srli_epi16(v, 8), x, i);
    } else {
      multiply(sums, _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8), x, i);
    }
  }
}

// Integers of a group for 8 lanes.
template <PanelFormat kShape, int kRows>
[[gnu::always_inline]] inline void multiply_group(__m256i (&sums)[kRows], const std::byte* codes, const OrderedRows& x,
                                                  std::ptrdiff_t group) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    sums[r] = _mm256_setzero_si256();
    if constexpr (is_nibbles(kShape) && !kShape.affine) {  // codes are 8 too large
      const std::int32_t* const negated = x.negated + 2 * group * x.block_rows + r;
      sums[r] = _mm256_set1_epi32((negated[0] + negated[x.block_rows]) * 8);
    }
  }
  if constexpr (kShape.group == 16) {
    multiply_unit<kShape>(sums, codes, x.words + group / 2 * kRows * kUnitBytes + group % 2 * (kUnitBytes / 2));
  } else {
    constexpr int kUnits = kShape.group / kUnit;
    for (int u = 0; u < kUnits; ++u) {
      multiply_unit<kShape>(sums, codes + u * (code_bytes(kShape) / kUnits), x.words + (group * kUnits + u) * kRows * kUnitBytes);
    }
  }
}

template <PanelFormat kShape>
[[gnu::always_inline]] inline float x_sum(const OrderedRows& x, std::ptrdiff_t group, int row) {
  constexpr int kUnits = kShape.group / kUnit;
  const float* const sums = x.sums + group * kUnits * x.block_rows + row;
  float sum = sums[0];
  for (int u = 1; u < kUnits; ++u) sum += sums[u * x.block_rows];
  return sum;
}

// sums[r][0 .. 15] of one panel.
template <PanelFormat kShape, int kRows>
void run_panel(const PanelMatrix& weights, int index, const OrderedRows& x, float (*sums)[2][kPanelRows], int panel_of_two) {
  constexpr std::ptrdiff_t kCodes = code_bytes(kShape);
  const PanelFormat format = weights.format;
  const std::byte* panel = weights.panel(index);
  const std::ptrdiff_t step = panel_group_bytes(format);
  constexpr int kSegmentGroups = kSegmentUnits * kUnit / kShape.group;
  __m256 acc[2][kRows], total[2][kRows];
  for (int half = 0; half < 2; ++half) {
    for (int r = 0; r < kRows; ++r) acc[half][r] = total[half][r] = _mm256_setzero_ps();
  }
  for (int g = 0; g < weights.groups; ++g, panel += step) {
    for (std::ptrdiff_t z = 0; z < step; z += 64)
      _mm_prefetch(reinterpret_cast<const char*>(panel) + kPrefetchBytes + z, _MM_HINT_T0);
    const std::byte* const numbers = panel + kCodes;
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m256i integers[kRows];
      multiply_group<kShape>(integers, panel + half * 32, x, g);
      const __m256 scale = load_numbers8(format.numbers, numbers, half);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        acc[half][r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(integers[r]), scale, acc[half][r]);
        if constexpr (kShape.affine) {
          const __m256 bias = load_numbers8(format.numbers, numbers + numbers_bytes(format), half);
          acc[half][r] = _mm256_fmadd_ps(bias, _mm256_set1_ps(x_sum<kShape>(x, g, r)), acc[half][r]);
        }
      }
    }
    if ((g + 1) % kSegmentGroups != 0 && g + 1 < weights.groups) continue;
    const float* const scales = x.scales + g / kSegmentGroups * x.block_rows;
    for (int half = 0; half < 2; ++half) {
      for (int r = 0; r < kRows; ++r) {
        total[half][r] = _mm256_fmadd_ps(acc[half][r], _mm256_set1_ps(scales[r]), total[half][r]);
        acc[half][r] = _mm256_setzero_ps();
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int half = 0; half < 2; ++half) _mm256_storeu_ps(sums[r][panel_of_two] + 8 * half, total[half][r]);
  }
}

template <PanelFormat kShape>
void run_panels(const PanelMatrix& weights, const OrderedRows& x, int rows, int panel, float (*sums)[2][kPanelRows], int of_two) {
  switch (rows) {
    case 1:
      return run_panel<kShape, 1>(weights, panel, x, sums, of_two);
    case 2:
      return run_panel<kShape, 2>(weights, panel, x, sums, of_two);
    case 3:
      return run_panel<kShape, 3>(weights, panel, x, sums, of_two);
    default:
      return run_panel<kShape, 4>(weights, panel, x, sums, of_two);
  }
}

// The most rows whose ordered words fit the scratch, and that lie in one block.
int rows_at_once(const Activations& x, int row) {
  const int in_block = x.bytes.block_rows - row % x.bytes.block_rows;
  int rows = kRowsAtOnce < in_block ? kRowsAtOnce : in_block;
  rows = rows < x.rows - row ? rows : x.rows - row;
  while (rows > 1 && std::size_t{static_cast<unsigned>(rows)} * static_cast<unsigned>(x.units) * kUnitBytes > kLinearScratchBytes)
    --rows;
  return rows;
}

template <PanelFormat kShape>
void run(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  float sums[kRowsAtOnce][2][kPanelRows];
  for (int first = share.panel_begin; first < share.panel_end; first += kPanelsAtOnce) {
    const int end = share.panel_end - first < kPanelsAtOnce ? share.panel_end : first + kPanelsAtOnce;
    for (int row = 0; row < x.rows;) {
      const int rows = rows_at_once(x, row);
      const OrderedRows ordered_rows = order_rows(x, row, rows, share.scratch);
      for (int p = first; p < end; p += 2) {
        const int panels = end - p < 2 ? 1 : 2;
        for (int i = 0; i < panels; ++i) run_panels<kShape>(weights, ordered_rows, rows, p + i, sums, i);
        for (int r = 0; r < rows; ++r) finish_row({&weights, &out, p, panels, row + r}, sums[r]);
      }
      row += rows;
    }
  }
}

}  // namespace

void linear_quantized_avx2(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  with_panel_shape(weights.format, [&]<PanelFormat kShape>() { run<kShape>(weights, x, out, share); });
}

}  // namespace linnet::cpu
