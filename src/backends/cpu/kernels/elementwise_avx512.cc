// swiglu, exp, rope and add with AVX-512.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

// Pairs (2i, 2i + 1) of a head's first values: even = a cos - b sin, odd = b cos + a sin.
void rotate_interleaved(float* head, const float* cos, const float* sin, std::int32_t dims) {
  const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  for (std::int32_t d = 0; d < dims; d += 16) {
    const __mmask16 mask = lanes(dims - d);
    const __mmask16 pairs = lanes((dims - d) / 2 < 8 ? (dims - d) / 2 : 8);
    const __m512 x = _mm512_maskz_loadu_ps(mask, head + d);
    const __m512 c = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(pairs, cos + d / 2));
    const __m512 s = _mm512_permutexvar_ps(twice, _mm512_maskz_loadu_ps(pairs, sin + d / 2));
    const __m512 swapped = _mm512_mul_ps(_mm512_permute_ps(x, 0xb1), s);
    _mm512_mask_storeu_ps(head + d, mask, _mm512_fmaddsub_ps(x, c, swapped));
  }
}

// Pairs (i, i + dims / 2), the same arithmetic.
void rotate_halves(float* head, const float* cos, const float* sin, std::int32_t dims) {
  const std::int32_t half = dims / 2;
  for (std::int32_t d = 0; d < half; d += 16) {
    const __mmask16 mask = lanes(half - d);
    const __m512 a = _mm512_maskz_loadu_ps(mask, head + d);
    const __m512 b = _mm512_maskz_loadu_ps(mask, head + half + d);
    const __m512 c = _mm512_maskz_loadu_ps(mask, cos + d);
    const __m512 s = _mm512_maskz_loadu_ps(mask, sin + d);
    _mm512_mask_storeu_ps(head + d, mask, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
    _mm512_mask_storeu_ps(head + half + d, mask, _mm512_fmadd_ps(b, c, _mm512_mul_ps(a, s)));
  }
}

}  // namespace

void swiglu_avx512(const float* gate, const float* up, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lanes(count - i);
    _mm512_mask_storeu_ps(out + i, mask,
                          silu_product(_mm512_maskz_loadu_ps(mask, gate + i), _mm512_maskz_loadu_ps(mask, up + i)));
  }
}

void exponential_avx512(const float* x, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lanes(count - i);
    _mm512_mask_storeu_ps(out + i, mask, exponential(_mm512_maskz_loadu_ps(mask, x + i)));
  }
}

void rope_avx512(const RopeTask& task, int row_begin, int row_end) {
  const std::int32_t half = task.dims / 2;
  for (int row = row_begin; row < row_end; ++row) {
    const float* const cos = task.cos + std::ptrdiff_t{row} * half;
    const float* const sin = task.sin + std::ptrdiff_t{row} * half;
    for (std::int32_t h = 0; h < task.heads; ++h) {
      float* const head = task.x + row * task.stride + std::ptrdiff_t{h} * task.head_dim;
      if (task.interleaved) {
        rotate_interleaved(head, cos, sin, task.dims);
      } else {
        rotate_halves(head, cos, sin, task.dims);
      }
    }
  }
}

void add_avx512(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 16) {
    const __mmask16 mask = lanes(count - i);
    _mm512_mask_storeu_ps(y + i, mask, _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y + i), _mm512_maskz_loadu_ps(mask, x + i)));
  }
}

}  // namespace linnet::cpu
