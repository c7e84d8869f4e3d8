// swiglu, exp, rope and add with AVX2.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx2.h"

namespace linnet::cpu {
namespace {

// Pairs (2i, 2i + 1) of a head's first values: even = a cos - b sin, odd = b cos + a sin.
void rotate_interleaved(float* head, const float* cos, const float* sin, std::int32_t dims) {
  const __m256i twice = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  for (std::int32_t d = 0; d < dims; d += 8) {
    const __m256i mask = lanes8(dims - d);
    const __m256i pairs = lanes8((dims - d) / 2 < 4 ? (dims - d) / 2 : 4);
    const __m256 x = _mm256_maskload_ps(head + d, mask);
    const __m256 c = _mm256_permutevar8x32_ps(_mm256_maskload_ps(cos + d / 2, pairs), twice);
    const __m256 s = _mm256_permutevar8x32_ps(_mm256_maskload_ps(sin + d / 2, pairs), twice);
    const __m256 swapped = _mm256_mul_ps(_mm256_permute_ps(x, 0xb1), s);
    _mm256_maskstore_ps(head + d, mask, _mm256_fmaddsub_ps(x, c, swapped));
  }
}

// Pairs (i, i + dims / 2), the same arithmetic.
void rotate_halves(float* head, const float* cos, const float* sin, std::int32_t dims) {
  const std::int32_t half = dims / 2;
  for (std::int32_t d = 0; d < half; d += 8) {
    const __m256i mask = lanes8(half - d);
    const __m256 a = _mm256_maskload_ps(head + d, mask);
    const __m256 b = _mm256_maskload_ps(head + half + d, mask);
    const __m256 c = _mm256_maskload_ps(cos + d, mask);
    const __m256 s = _mm256_maskload_ps(sin + d, mask);
    _mm256_maskstore_ps(head + d, mask, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
    _mm256_maskstore_ps(head + half + d, mask, _mm256_fmadd_ps(b, c, _mm256_mul_ps(a, s)));
  }
}

}  // namespace

void swiglu_avx2(const float* gate, const float* up, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 8) {
    const __m256i mask = lanes8(count - i);
    _mm256_maskstore_ps(out + i, mask, silu_product8(_mm256_maskload_ps(gate + i, mask), _mm256_maskload_ps(up + i, mask)));
  }
}

void exponential_avx2(const float* x, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 8) {
    const __m256i mask = lanes8(count - i);
    _mm256_maskstore_ps(out + i, mask, exponential8(_mm256_maskload_ps(x + i, mask)));
  }
}

void rope_avx2(const RopeTask& task, int row_begin, int row_end) {
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

void add_avx2(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += 8) {
    const __m256i mask = lanes8(count - i);
    _mm256_maskstore_ps(y + i, mask, _mm256_add_ps(_mm256_maskload_ps(y + i, mask), _mm256_maskload_ps(x + i, mask)));
  }
}

}  // namespace linnet::cpu
