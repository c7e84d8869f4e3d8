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

// Words of two vectors of 16 dwords: the lower halves in order.
__m512i lower_words(__m512i first, __m512i second) {
  alignas(64) static constexpr auto kWords = [] {
    std::array<std::uint16_t, 32> words{};
    for (std::uint16_t i = 0; i < 32; ++i) words[i] = static_cast<std::uint16_t>(2 * i);
    return words;
  }();
  return _mm512_permutex2var_epi16(first, _mm512_load_si512(kWords.data()), second);
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
  float* scale;
  float* sum;
  std::int32_t* negated;
  std::ptrdiff_t block_rows;

  [[gnu::always_inline]] inline void put(std::ptrdiff_t unit, __m512i words, std::int32_t front, std::int32_t back) const {
    const __m512i upper = _mm512_srai_epi16(_mm512_add_epi16(words, _mm512_set1_epi16(128)), 8);
    const __m512i lower = _mm512_sub_epi16(words, _mm512_slli_epi16(upper, 8));
    std::byte* const to = high + unit * block_rows * 64;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi16_epi8(upper));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + block_rows * 32), _mm512_cvtepi16_epi8(lower));
    sum[unit * block_rows] = static_cast<float>(front + back);
    negated[2 * unit * block_rows] = -front;
    negated[(2 * unit + 1) * block_rows] = -back;
  }
};

RowPlace place_of(const Activations& out, int row) {
  const ActivationBlocks& blocks = out.bytes;
  const std::ptrdiff_t block = row / blocks.block_rows, r = row % blocks.block_rows;
  const std::ptrdiff_t base = block * out.units * blocks.block_rows;
  return {blocks.codes + (2 * base + r) * 32, blocks.scales + block * out.segments() * blocks.block_rows + r,
          blocks.sums + base + r, blocks.negated + 2 * base + r, blocks.block_rows};
}

// Writes a segment of kUnits units, an even number, from this unit on.
template <int kUnits>
[[gnu::always_inline]] inline void round_segment(const RowValues& values, const RowPlace& place, int first) {
  __m512 v[2 * kUnits];
  __m512i most = _mm512_setzero_si512();
#pragma GCC unroll 16
  for (int i = 0; i < 2 * kUnits; ++i) {
    v[i] = values.at(first * kUnit + 16 * i);
    // NaN and infinity are larger than all numbers.
    most = _mm512_max_epu32(most, _mm512_and_si512(_mm512_castps_si512(v[i]), _mm512_set1_epi32(0x7fffffff)));
  }
  const SegmentRounding rounding = segment_rounding(_mm512_reduce_max_epu32(most));
  place.scale[first / kSegmentUnits * place.block_rows] = rounding.scale;
  const __m512 steps = _mm512_set1_ps(rounding.steps);
  const bool zero = rounding.steps == 0.0F;  // values may be anything
#pragma GCC unroll 4
  for (int u = 0; u < kUnits; u += 2) {
    __m512i integers[4], words[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      integers[i] = zero ? _mm512_setzero_si512() : _mm512_cvtps_epi32(_mm512_mul_ps(v[2 * u + i], steps));
    for (int i = 0; i < 2; ++i) words[i] = lower_words(integers[2 * i], integers[2 * i + 1]);
    const __m128i sums = sums_of(words[0], words[1]);
    place.put(first + u, words[0], _mm_cvtsi128_si32(sums), _mm_extract_epi32(sums, 2));
    place.put(first + u + 1, words[1], _mm_extract_epi32(sums, 1), _mm_extract_epi32(sums, 3));
  }
}

void round_row(const RowValues& values, const Activations& out, int row) {
  const RowPlace place = place_of(out, row);
  int u = 0;
  for (; u + kSegmentUnits <= out.units; u += kSegmentUnits) round_segment<kSegmentUnits>(values, place, u);
  switch (out.units - u) {  // an even number
    case 2:
      return round_segment<2>(values, place, u);
    case 4:
      return round_segment<4>(values, place, u);
    case 6:
      return round_segment<6>(values, place, u);
    default:
      return;
  }
}

}  // namespace

void round_rows_avx512(const RoundTask& task, const Activations& out, int row_begin, int row_end) {
  for (int row = row_begin; row < row_end; ++row) {
    const float* const x = task.x.data + row * task.x.stride;
    RowValues values{x, task.weight, 1.0F, out.cols};
    if (task.weight != nullptr) values.factor = norm_factor(x, out.cols, task.eps);
    for (std::int32_t c = 0; c < out.cols && out.floats != nullptr; c += 16)
      _mm512_mask_storeu_ps(out.floats + std::ptrdiff_t{row} * out.cols + c, lanes(out.cols - c), values.at(c));
    if (out.bytes) round_row(values, out, row);
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
