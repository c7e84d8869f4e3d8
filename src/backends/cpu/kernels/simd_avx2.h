// Vector words shared by the AVX2 files, as simd_avx512.h has them: 16 lanes are two vectors. For files built for AVX2, FMA and
// F16C only.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/linear.h"

namespace linnet::cpu {
namespace {  // a copy in each file: none may end up in code that other machines run

// Lanes of 8 that `left` columns fill, all bits set.
[[gnu::always_inline]] inline __m256i lanes8(std::int64_t left) {
  const auto count = static_cast<std::int32_t>(left < 0 ? 0 : (left > 8 ? 8 : left));
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Numbers 8 * half .. of a panel's 16: scales, biases or a dense column.
[[gnu::always_inline]] inline __m256 load_numbers8(DType type, const std::byte* numbers, int half) {
  if (type == DType::kF32) return _mm256_loadu_ps(reinterpret_cast<const float*>(numbers) + 8 * half);
  const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers) + half);
  if (type == DType::kF16) return _mm256_cvtph_ps(words);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}

// e^x = 2^n e^r with r in +-ln(2)/2 and Taylor's polynomial of degree 7 (relative error 6e-9). exponential_portable() does the
// same.
[[gnu::always_inline]] inline __m256 exponential8(__m256 x) {
  const __m256 least = _mm256_set1_ps(-87.0F), most = _mm256_set1_ps(88.72283F);
  const __m256 bounded = _mm256_max_ps(least, _mm256_min_ps(most, x));  // NaN goes through
  const __m256 n =
      _mm256_round_ps(_mm256_mul_ps(bounded, _mm256_set1_ps(1.44269504F)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693145752F), bounded);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(1.42860677e-6F), r);
  __m256 p = _mm256_set1_ps(1.0F / 5040.0F);
  for (const float c : {1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F, 1.0F, 1.0F})
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(c));
  // 2^n in two factors: 2^128 alone is no float.
  const __m256i exponent = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  const __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(exponent, half), bias), 23));
  __m256 y = _mm256_mul_ps(_mm256_mul_ps(p, first), second);
  y = _mm256_blendv_ps(y, _mm256_setzero_ps(), _mm256_cmp_ps(x, least, _CMP_LT_OQ));
  y = _mm256_blendv_ps(y, _mm256_set1_ps(__builtin_inff()), _mm256_cmp_ps(x, most, _CMP_GT_OQ));
  return _mm256_blendv_ps(y, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

// gate * sigmoid(gate) * up
[[gnu::always_inline]] inline __m256 silu_product8(__m256 gate, __m256 up) {
  const __m256 e = exponential8(_mm256_sub_ps(_mm256_setzero_ps(), gate));
  return _mm256_mul_ps(_mm256_div_ps(gate, _mm256_add_ps(_mm256_set1_ps(1.0F), e)), up);
}

// Sums of one or two neighbouring panels of one row on their way into y.
struct FinishRow {
  const PanelMatrix* weights;
  const LinearOutput* out;
  std::int32_t panel;   // the first of the two
  std::int32_t panels;  // 1 or 2
  std::int32_t row;
};

[[gnu::always_inline]] inline void finish_row(const FinishRow& f, const float (&sums)[2][kPanelRows]) {
  const bool swiglu = f.out->epilogue == Epilogue::kSwiglu;
  const float* const bias = f.weights->bias == nullptr ? nullptr : f.weights->bias + std::ptrdiff_t{f.panel} * kPanelRows;
  const auto product = [&](int panel, int half) {
    const __m256 value = _mm256_loadu_ps(sums[panel] + 8 * half);
    return bias == nullptr ? value : _mm256_add_ps(value, _mm256_loadu_ps(bias + panel * kPanelRows + 8 * half));
  };
  const std::int64_t columns = swiglu ? f.weights->rows / 2 : f.weights->rows;
  for (int i = 0; i < (swiglu ? 1 : f.panels); ++i) {
    for (int half = 0; half < 2; ++half) {
      const std::int64_t column = std::int64_t{swiglu ? f.panel / 2 : f.panel + i} * kPanelRows + 8 * half;
      const __m256i mask = lanes8(columns - column);
      float* const y = f.out->y + f.row * f.out->stride + column;
      __m256 value = product(i, half);
      if (swiglu) value = silu_product8(value, product(1, half));
      if (f.out->epilogue == Epilogue::kAdd) value = _mm256_add_ps(_mm256_maskload_ps(y, mask), value);
      _mm256_maskstore_ps(y, mask, value);
    }
  }
}

}  // namespace
}  // namespace linnet::cpu
