// Rounding of activations, RMS norm and the other row-wise words with AVX-512.
#include <immintrin.h>

#include <array>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

// Columns are folded into four vectors, columns ascending, then those and their lanes pairwise: the order of rms_norm everywhere.
float sum_of_squares(const float* x, std::int32_t cols) {
  __m512 acc[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
  std::int32_t c = 0;
  for (; c + 64 <= cols; c += 64) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const __m512 v = _mm512_loadu_ps(x + c + 16 * i);
      acc[i] = _mm512_fmadd_ps(v, v, acc[i]);
    }
  }
  for (int i = 0; c < cols; c += 16, ++i) {
    const __m512 v = _mm512_maskz_loadu_ps(lanes(cols - c), x + c);
    acc[i] = _mm512_fmadd_ps(v, v, acc[i]);
  }
  const __m512 sum = _mm512_add_ps(_mm512_add_ps(acc[0], acc[1]), _mm512_add_ps(acc[2], acc[3]));
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

float norm_factor(const float* x, std::int32_t cols, float eps) {
  const __m128 mean = _mm_set_ss(sum_of_squares(x, cols) / static_cast<float>(cols) + eps);
  return 1.0F / _mm_cvtss_f32(_mm_sqrt_ss(mean));
}

// The values of a row that are to be rounded: x, or x * factor * weight.
struct RowValues {
  const float* x;
  const float* weight;  // null: x itself
  float factor;
  std::int32_t cols;

  [[gnu::always_inline]] inline __m512 at(std::int32_t column) const {
    const __mmask16 mask = lanes(cols - column);
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + column);
    if (weight == nullptr) return v;
    return _mm512_mul_ps(_mm512_mul_ps(v, _mm512_set1_ps(factor)), _mm512_maskz_loadu_ps(mask, weight + column));
  }
};

// The largest |value|, as bits: NaN and infinity are larger than all numbers.
std::uint32_t largest_magnitude(const RowValues& row, float* floats) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512i most = _mm512_setzero_si512();
  for (std::int32_t c = 0; c < row.cols; c += 16) {
    const __m512 v = row.at(c);
    if (floats != nullptr) _mm512_mask_storeu_ps(floats + c, lanes(row.cols - c), v);
    most = _mm512_max_epu32(most, _mm512_and_si512(_mm512_castps_si512(v), magnitude));
  }
  return _mm512_reduce_max_epu32(most);
}

// Word of (v0, v1), two vectors of f32, that is the upper half of the value for position p of a tile's row.
constexpr auto kTileWords = [] {
  std::array<std::uint16_t, 32> words{};
  for (unsigned p = 0; p < 32; ++p) {
    const auto column = static_cast<unsigned>(tile_column(static_cast<int>(p)));
    words[p] = static_cast<std::uint16_t>(column % 16 * 2 + 1 + column / 16 * 32);
  }
  return words;
}();

// Where a row's groups go.
struct RowPlace {
  std::ptrdiff_t first;  // of the row in sums: block * groups * block_rows + row of the block
  std::ptrdiff_t step;   // block_rows
  std::ptrdiff_t codes;  // rows of the block's first group before this row
};

[[gnu::always_inline]] inline RowPlace place_of(const ActivationBlocks& blocks, int groups, int row) {
  const int block = row / blocks.block_rows;
  const std::ptrdiff_t base = std::ptrdiff_t{block} * groups * blocks.block_rows;
  const int r = row % blocks.block_rows;
  return {base + r, blocks.block_rows, 2 * base + r};
}

[[gnu::always_inline]] inline void put_bytes(const ActivationBlocks& bytes, const RowPlace& at, int group,
                                             const __m512i (&high)[2], const __m512i (&low)[2]) {
  std::byte* const row = bytes.codes + (at.codes + group * 2 * at.step) * 32;
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row + 16 * i), _mm512_cvtepi32_epi8(high[i]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row + at.step * 32 + 16 * i), _mm512_cvtepi32_epi8(low[i]));
  }
}

[[gnu::always_inline]] inline __m512i bf16_row(const __m512i (&values)[2], __m512i words) {
  return _mm512_permutex2var_epi16(_mm512_castps_si512(_mm512_cvtepi32_ps(values[0])), words,
                                   _mm512_castps_si512(_mm512_cvtepi32_ps(values[1])));
}

[[gnu::always_inline]] inline void put_tiles(const ActivationBlocks& tiles, const RowPlace& at, int group,
                                             const __m512i (&high)[2], const __m512i (&low)[2], __m512i words) {
  std::byte* const row = tiles.codes + (at.codes + group * 2 * at.step) * 64;
  const __m512i scaled[2] = {_mm512_slli_epi32(high[0], 7), _mm512_slli_epi32(high[1], 7)};
  _mm512_store_si512(row, bf16_row(scaled, words));
  _mm512_store_si512(row + at.step * 64, bf16_row(low, words));
}

void put_sum(const Activations& out, const RowPlace& bytes, const RowPlace& tiles, int group, std::int32_t sum) {
  if (out.bytes) {
    out.bytes.sums[bytes.first + group * bytes.step] = static_cast<float>(sum);
    out.bytes.negated[bytes.first + group * bytes.step] = -sum;
  }
  if (out.tiles) out.tiles.sums[tiles.first + group * tiles.step] = static_cast<float>(sum);
}

// Writes all groups of a row; `steps`: 16256 / max|x|, or 0 for a row of zeros.
void round_row(const RowValues& values, float steps, const Activations& out, int row) {
  const __m512i words = _mm512_loadu_si512(kTileWords.data());
  const RowPlace bytes = out.bytes ? place_of(out.bytes, out.groups, row) : RowPlace{};
  const RowPlace tiles = out.tiles ? place_of(out.tiles, out.groups, row) : RowPlace{};
  const __m512 factor = _mm512_set1_ps(steps);
  const __m512i half = _mm512_set1_epi32(64);
  for (int g = 0; g < out.groups; ++g) {
    __m512i high[2], low[2], sum = _mm512_setzero_si512();
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const std::int32_t column = g * kGroup + 16 * i;
      __m512i v = _mm512_setzero_si512();
      if (steps != 0.0F && column < values.cols) v = _mm512_cvtps_epi32(_mm512_mul_ps(values.at(column), factor));
      high[i] = _mm512_srai_epi32(_mm512_add_epi32(v, half), 7);
      low[i] = _mm512_sub_epi32(v, _mm512_slli_epi32(high[i], 7));
      sum = _mm512_add_epi32(sum, v);
    }
    if (out.bytes) put_bytes(out.bytes, bytes, g, high, low);
    if (out.tiles) put_tiles(out.tiles, tiles, g, high, low, words);
    put_sum(out, bytes, tiles, g, _mm512_reduce_add_epi32(sum));
  }
}

}  // namespace

void round_rows_avx512(const RoundTask& task, const Activations& out, int row_begin, int row_end) {
  for (int row = row_begin; row < row_end; ++row) {
    const float* const x = task.x.data + row * task.x.stride;
    RowValues values{x, task.weight, 1.0F, out.cols};
    if (task.weight != nullptr) values.factor = norm_factor(x, out.cols, task.eps);
    float* const floats = out.floats == nullptr ? nullptr : out.floats + std::ptrdiff_t{row} * out.cols;
    const std::uint32_t magnitude = largest_magnitude(values, floats);
    const RowRounding rounding = row_rounding(magnitude);
    out.scales[row] = rounding.scale;
    if (out.bytes || out.tiles) round_row(values, rounding.steps, out, row);
  }
}

void rms_norm_avx512(const RmsNormTask& task, int row_begin, int row_end) {
  for (int row = row_begin; row < row_end; ++row) {
    const float* const x = task.x + row * task.x_stride;
    float* const out = task.out + row * task.out_stride;
    const RowValues values{x, task.weight, norm_factor(x, task.cols, task.eps), task.cols};
    for (std::int32_t c = 0; c < task.cols; c += 16) _mm512_mask_storeu_ps(out + c, lanes(task.cols - c), values.at(c));
  }
}

}  // namespace linnet::cpu
