// Vector words shared by the AVX-512 files: scales, exp, and the way of finished sums into y. For files built for AVX-512
// only.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/linear.h"

namespace linnet::cpu {
namespace {  // a copy in each file: none may end up in code that other machines run

[[gnu::always_inline]] inline __m512 load_half(const void* halves) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(halves)));
}

// 16 numbers of a panel: scales, biases or a dense column.
[[gnu::always_inline]] inline __m512 load_numbers(DType type, const void* numbers) {
  if (type == DType::kF16) return load_half(numbers);
  if (type == DType::kF32) return _mm512_loadu_ps(numbers);
  const __m256i words = _mm256_loadu_si256(static_cast<const __m256i*>(numbers));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
}

// Lanes of 16 that `left` columns fill.
[[gnu::always_inline]] inline __mmask16 lanes(std::int64_t left) {
  return left >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1U << (left < 0 ? 0 : left)) - 1U);
}

// e^x = 2^n e^r with r in +-ln(2)/2 and Taylor's polynomial of degree 7 (relative error 6e-9). exponential_portable() does the
// same.
[[gnu::always_inline]] inline __m512 exponential(__m512 x) {
  const __m512 bounded = _mm512_max_ps(_mm512_set1_ps(-87.0F), _mm512_min_ps(_mm512_set1_ps(88.72283F), x));  // NaN goes through
  const __m512 n =
      _mm512_roundscale_ps(_mm512_mul_ps(bounded, _mm512_set1_ps(1.44269504F)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693145752F), bounded);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.42860677e-6F), r);
  __m512 p = _mm512_set1_ps(1.0F / 5040.0F);
  for (const float c : {1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F, 1.0F, 1.0F})
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(c));
  // 2^n in two factors: 2^128 alone is no float.
  const __m512i exponent = _mm512_cvtps_epi32(n);
  const __m512i half = _mm512_srai_epi32(exponent, 1);
  const __m512i bias = _mm512_set1_epi32(127);
  const __m512 first = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(half, bias), 23));
  const __m512 second = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(exponent, half), bias), 23));
  __m512 y = _mm512_mul_ps(_mm512_mul_ps(p, first), second);
  y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0F), _CMP_LT_OQ), _mm512_setzero_ps());
  y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, _mm512_set1_ps(88.72283F), _CMP_GT_OQ), _mm512_set1_ps(__builtin_inff()));
  return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

// gate * sigmoid(gate) * up
[[gnu::always_inline]] inline __m512 silu_product(__m512 gate, __m512 up) {
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512 e = exponential(_mm512_sub_ps(_mm512_setzero_ps(), gate));
  return _mm512_mul_ps(_mm512_div_ps(gate, _mm512_add_ps(one, e)), up);
}

// Sums of one or two neighbouring panels on their way into y: row r of each at first + r * stride and second + r * stride.
struct FinishSums {
  const float* first;
  const float* second;
  std::ptrdiff_t stride;
};
struct Finish {
  const LinearOutput* out;
  const PanelMatrix* weights;
  std::int32_t panel;   // the first of the two
  std::int32_t panels;  // 1 or 2
};

[[gnu::always_inline]] inline void put(const LinearOutput& out, float* y, __mmask16 mask, __m512 value) {
  if (out.epilogue == Epilogue::kAdd) value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), value);
  _mm512_mask_storeu_ps(y, mask, value);
}

inline void finish(const Finish& f, const FinishSums& sums, int row_begin, int rows) {
  const LinearOutput& out = *f.out;
  const bool swiglu = out.epilogue == Epilogue::kSwiglu;
  const std::int64_t column = std::int64_t{swiglu ? f.panel / 2 : f.panel} * kPanelRows;
  const std::int64_t left = (swiglu ? f.weights->rows / 2 : f.weights->rows) - column;
  const __mmask16 first = lanes(left);
  const __mmask16 second = lanes(left - kPanelRows);
  const float* const bias = f.weights->bias == nullptr ? nullptr : f.weights->bias + std::ptrdiff_t{f.panel} * kPanelRows;
  const auto product = [&](const float* sums_of_panel, int panel) {
    const __m512 value = _mm512_loadu_ps(sums_of_panel);
    return bias == nullptr ? value : _mm512_add_ps(value, _mm512_loadu_ps(bias + panel * kPanelRows));
  };
  for (int r = 0; r < rows; ++r) {
    float* const y = out.y + (row_begin + r) * out.stride + column;
    const __m512 a = product(sums.first + r * sums.stride, 0);
    if (f.panels == 1) {
      put(out, y, first, a);
      continue;
    }
    const __m512 b = product(sums.second + r * sums.stride, 1);
    if (swiglu) {
      _mm512_mask_storeu_ps(y, first, silu_product(a, b));
    } else {
      put(out, y, first, a);
      put(out, y + kPanelRows, second, b);
    }
  }
}

}  // namespace
}  // namespace linnet::cpu
