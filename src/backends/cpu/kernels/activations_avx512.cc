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

// Words of two vectors of 16 dwords: the lower halves in order.
__m512i lower_words(__m512i first, __m512i second) {
  alignas(64) static constexpr auto kWords = [] {
    std::array<std::uint16_t, 32> words{};
    for (std::uint16_t i = 0; i < 32; ++i) words[i] = static_cast<std::uint16_t>(2 * i);
    return words;
  }();
  return _mm512_permutex2var_epi16(first, _mm512_load_si512(kWords.data()), second);
}

// The integers of a unit as 16-bit words; they have 15 bits.
[[gnu::always_inline]] inline __m512i rounded_unit(const RowValues& values, __m512 steps, std::int32_t column) {
  const __m512i first = _mm512_cvtps_epi32(_mm512_mul_ps(values.at(column), steps));
  const __m512i second = _mm512_cvtps_epi32(_mm512_mul_ps(values.at(column + 16), steps));
  return lower_words(first, second);
}

// Sums of 16 words each of two units: first half of the first, first half of the second, second halves likewise.
__m128i sums_of(__m512i first, __m512i second) {
  const __m512i ones = _mm512_set1_epi16(1);
  const __m512i a = _mm512_madd_epi16(first, ones), b = _mm512_madd_epi16(second, ones);
  const __m512i both = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  const __m256i front = _mm512_castsi512_si256(both), back = _mm512_extracti64x4_epi64(both, 1);
  const __m256i eight = _mm256_add_epi32(_mm256_unpacklo_epi64(front, back), _mm256_unpackhi_epi64(front, back));
  return _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
}

// Where the units of a row go.
struct RowPlace {
  std::byte* high;
  float* sum;
  std::int32_t* negated;
  std::ptrdiff_t block_rows;

  [[gnu::always_inline]] inline void put(std::ptrdiff_t unit, __m512i words, std::int32_t front, std::int32_t back) const {
    const __m512i upper = _mm512_srai_epi16(_mm512_add_epi16(words, _mm512_set1_epi16(64)), 7);
    const __m512i lower = _mm512_sub_epi16(words, _mm512_slli_epi16(upper, 7));
    std::byte* const to = high + unit * block_rows * 64;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi16_epi8(upper));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + block_rows * 32), _mm512_cvtepi16_epi8(lower));
    sum[unit * block_rows] = static_cast<float>(front + back);
    negated[2 * unit * block_rows] = -front;
    negated[(2 * unit + 1) * block_rows] = -back;
  }
};

RowPlace place_of(const ActivationBlocks& blocks, int units, int row) {
  const std::ptrdiff_t base = std::ptrdiff_t{row / blocks.block_rows} * units * blocks.block_rows;
  const std::ptrdiff_t r = row % blocks.block_rows;
  return {blocks.codes + (2 * base + r) * 32, blocks.sums + base + r, blocks.negated + 2 * base + r, blocks.block_rows};
}

// Writes all units of a row, an even number; `steps`: 16256 / max|x|, or 0 for a row of zeros (whose values may be anything).
void round_row(const RowValues& values, float steps, const Activations& out, int row) {
  const RowPlace place = place_of(out.bytes, out.units, row);
  const __m512 factor = _mm512_set1_ps(steps);
  for (int u = 0; u < out.units; u += 2) {
    __m512i words[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    if (steps != 0.0F) {
      for (int i = 0; i < 2; ++i) words[i] = rounded_unit(values, factor, (u + i) * kUnit);
    }
    const __m128i sums = sums_of(words[0], words[1]);
    place.put(u, words[0], _mm_cvtsi128_si32(sums), _mm_extract_epi32(sums, 2));
    place.put(u + 1, words[1], _mm_extract_epi32(sums, 1), _mm_extract_epi32(sums, 3));
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
    if (out.bytes) round_row(values, rounding.steps, out, row);
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
