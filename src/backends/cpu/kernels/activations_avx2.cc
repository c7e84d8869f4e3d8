// Rounding of activations with AVX2.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx2.h"

namespace linnet::cpu {
namespace {

// Columns are folded into 64 sums, columns ascending, then those pairwise: the order of rms_norm everywhere.
float sum_of_squares(const float* x, std::int32_t cols) {
  __m256 acc[8];
  for (auto& a : acc) a = _mm256_setzero_ps();
  for (std::int32_t c = 0; c < cols; c += 64) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const std::int32_t left = cols - c - 8 * i;
      const __m256 v = left >= 8   ? _mm256_loadu_ps(x + c + 8 * i)
                       : left <= 0 ? _mm256_setzero_ps()
                                   : _mm256_maskload_ps(x + c + 8 * i, lanes8(left));
      acc[i] = _mm256_fmadd_ps(v, v, acc[i]);
    }
  }
  const __m256 front = _mm256_add_ps(_mm256_add_ps(acc[0], acc[2]), _mm256_add_ps(acc[4], acc[6]));
  const __m256 back = _mm256_add_ps(_mm256_add_ps(acc[1], acc[3]), _mm256_add_ps(acc[5], acc[7]));
  const __m256 eight = _mm256_add_ps(front, back);
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

  // Zero beyond the last column.
  [[gnu::always_inline]] inline __m256 at(std::int32_t column) const {
    if (column >= cols) return _mm256_setzero_ps();
    const __m256i mask = lanes8(cols - column);
    const __m256 v = _mm256_maskload_ps(x + column, mask);
    if (weight == nullptr) return v;
    return _mm256_mul_ps(_mm256_mul_ps(v, _mm256_set1_ps(factor)), _mm256_maskload_ps(weight + column, mask));
  }
};

// The largest |value|, as bits: NaN and infinity are larger than all numbers.
std::uint32_t largest_magnitude(const RowValues& row, std::int32_t begin, std::int32_t end) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i most = _mm256_setzero_si256();
  for (std::int32_t c = begin; c < end; c += 8)
    most = _mm256_max_epu32(most, _mm256_and_si256(_mm256_castps_si256(row.at(c)), magnitude));
  __m128i four = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  four = _mm_max_epu32(four, _mm_unpackhi_epi64(four, four));
  four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(four));
}

// The integers of 16 columns as words.
[[gnu::always_inline]] inline __m256i rounded16(const RowValues& values, __m256 steps, std::int32_t column) {
  const __m256i first = _mm256_cvtps_epi32(_mm256_mul_ps(values.at(column), steps));
  const __m256i second = _mm256_cvtps_epi32(_mm256_mul_ps(values.at(column + 8), steps));
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), _MM_SHUFFLE(3, 1, 2, 0));
}

[[gnu::always_inline]] inline std::int32_t sum_of_words(__m256i words) {
  const __m256i eight = _mm256_madd_epi16(words, _mm256_set1_epi16(1));
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(four) + _mm_extract_epi32(four, 1);
}

[[gnu::always_inline]] inline void put_bytes(__m256i front, __m256i back, std::byte* to) {
  const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(front, back), _MM_SHUFFLE(3, 1, 2, 0));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
}

// Writes a unit; `steps`: 0 for zeros (the values may be anything).
void put_unit(const RowValues& values, float steps, const Activations& out, int row, std::ptrdiff_t unit) {
  const ActivationBlocks& bytes = out.bytes;
  const std::ptrdiff_t step = bytes.block_rows;
  const std::ptrdiff_t at = (row / step * out.units + unit) * step, r = row % step;
  __m256i words[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  if (steps != 0.0F) {
    for (int i = 0; i < 2; ++i)
      words[i] = rounded16(values, _mm256_set1_ps(steps), static_cast<std::int32_t>(unit) * kUnit + 16 * i);
  }
  __m256i upper[2], lower[2];
  std::int32_t sums[2];
  for (int i = 0; i < 2; ++i) {
    upper[i] = _mm256_srai_epi16(_mm256_add_epi16(words[i], _mm256_set1_epi16(128)), 8);
    lower[i] = _mm256_sub_epi16(words[i], _mm256_slli_epi16(upper[i], 8));
    sums[i] = sum_of_words(words[i]);
    bytes.negated[2 * at + i * step + r] = -sums[i];
  }
  std::byte* const high = bytes.codes + (2 * at + r) * 32;
  put_bytes(upper[0], upper[1], high);
  put_bytes(lower[0], lower[1], high + step * 32);
  bytes.sums[at + r] = static_cast<float>(sums[0] + sums[1]);
}

void round_row(const RowValues& values, const Activations& out, int row) {
  const std::ptrdiff_t step = out.bytes.block_rows;
  float* const scales = out.bytes.scales + row / step * out.segments() * step + row % step;
  for (int s = 0; s < out.segments(); ++s) {
    const int begin = s * kSegmentUnits, end = begin + kSegmentUnits < out.units ? begin + kSegmentUnits : out.units;
    const SegmentRounding rounding = segment_rounding(largest_magnitude(values, begin * kUnit, end * kUnit));
    scales[s * step] = rounding.scale;
    for (int u = begin; u < end; ++u) put_unit(values, rounding.steps, out, row, u);
  }
}

}  // namespace

void round_rows_avx2(const RoundTask& task, const Activations& out, int row_begin, int row_end) {
  for (int row = row_begin; row < row_end; ++row) {
    const float* const x = task.x.data + row * task.x.stride;
    RowValues values{x, task.weight, 1.0F, out.cols};
    if (task.weight != nullptr) values.factor = norm_factor(x, out.cols, task.eps);
    for (std::int32_t c = 0; c < out.cols && out.floats != nullptr; c += 8)
      _mm256_maskstore_ps(out.floats + std::ptrdiff_t{row} * out.cols + c, lanes8(out.cols - c), values.at(c));
    if (out.bytes) round_row(values, out, row);
  }
}

}  // namespace linnet::cpu
