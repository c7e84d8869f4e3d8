#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/kv_write.h"

namespace linnet::cpu {
namespace {

constexpr int kBlock = 32;
constexpr int kPanel = 16;  // tokens side by side in K

// What stays finite in f16: rounding takes 65520 and more to infinity.
inline __mmask16 finite_mask(__m512 x) { return _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(65520.0F), _CMP_LT_OQ); }
inline __m256i to_halves(__m512 x, __mmask16 finite) {
  return _mm512_maskz_cvtps_ph(finite, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// 16 rows of 16 to their columns, in place.
inline void transpose(__m512 (&x)[16]) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(t[i + j]);
      const __m512d b = _mm512_castps_pd(t[i + j + 2]);
      x[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      x[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  }
  // Now x[4 g + c] holds, in its 128-bit lane n, column 4 n + c of rows 4 g .. 4 g + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512 a = _mm512_shuffle_f32x4(x[c], x[4 + c], 0x44);
    const __m512 b = _mm512_shuffle_f32x4(x[8 + c], x[12 + c], 0x44);
    const __m512 d = _mm512_shuffle_f32x4(x[c], x[4 + c], 0xee);
    const __m512 e = _mm512_shuffle_f32x4(x[8 + c], x[12 + c], 0xee);
    t[c] = _mm512_shuffle_f32x4(a, b, 0x88);
    t[4 + c] = _mm512_shuffle_f32x4(a, b, 0xdd);
    t[8 + c] = _mm512_shuffle_f32x4(d, e, 0x88);
    t[12 + c] = _mm512_shuffle_f32x4(d, e, 0xdd);
  }
  for (int i = 0; i < 16; ++i) x[i] = t[i];
}

// 16 tokens of K of one head, a whole panel.
__mmask16 write_k_panel(const KvWriteTask& task, const float* k, std::uint16_t* panel) {
  __mmask16 finite = 0xffff;
  for (int d = 0; d < task.head_dim; d += 16) {
    __m512 x[16];
    for (int t = 0; t < 16; ++t) x[t] = _mm512_loadu_ps(k + t * task.k_stride + d);
    transpose(x);
    for (int i = 0; i < 16; ++i) {
      const __mmask16 mask = finite_mask(x[i]);
      finite = static_cast<__mmask16>(finite & mask);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel + (d + i) * kPanel), to_halves(x[i], mask));
    }
  }
  return finite;
}

// One token of K: a column of the panel.
__mmask16 write_k_token(const KvWriteTask& task, const float* k, std::uint16_t* column) {
  __mmask16 finite = 0xffff;
  for (int d = 0; d < task.head_dim; d += 16) {
    alignas(32) std::uint16_t halves[16];
    const __m512 x = _mm512_loadu_ps(k + d);
    const __mmask16 mask = finite_mask(x);
    finite = static_cast<__mmask16>(finite & mask);
    _mm256_store_si256(reinterpret_cast<__m256i*>(halves), to_halves(x, mask));
    for (int i = 0; i < 16; ++i) column[(d + i) * kPanel] = halves[i];
  }
  return finite;
}

__mmask16 write_v_token(const KvWriteTask& task, const float* v, std::uint16_t* row) {
  __mmask16 finite = 0xffff;
  for (int d = 0; d < task.head_dim; d += 16) {
    const __m512 x = _mm512_loadu_ps(v + d);
    const __mmask16 mask = finite_mask(x);
    finite = static_cast<__mmask16>(finite & mask);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + d * kBlock), to_halves(x, mask));
  }
  return finite;
}

// Tokens first .. first + count - 1 of the task, all in one block.
__mmask16 write_block(const KvWriteTask& task, int first, int count) {
  const int half = kBlock * task.head_dim;  // elements of K, or of V
  const int token = (task.position + first) % kBlock;
  auto* const block = reinterpret_cast<std::uint16_t*>(task.blocks[(task.position + first) / kBlock] + task.layer_offset);
  if (token == 0 && count < kBlock) {
    const __m512i zero = _mm512_setzero_si512();
    for (std::ptrdiff_t i = 0; i < std::ptrdiff_t{2} * half * task.kv_heads; i += 32) _mm512_storeu_si512(block + i, zero);
  }
  __mmask16 finite = 0xffff;
  for (int head = 0; head < task.kv_heads; ++head) {
    std::uint16_t* const k = block + std::ptrdiff_t{2} * half * head;
    std::uint16_t* const v = k + half;
    const float* const from_k = task.k + first * task.k_stride + std::ptrdiff_t{head} * task.head_dim;
    const float* const from_v = task.v + first * task.v_stride + std::ptrdiff_t{head} * task.head_dim;
    for (int i = 0; i < count;) {
      const int at = token + i;
      const float* const source = from_k + i * task.k_stride;
      std::uint16_t* const panel = k + at / kPanel * kPanel * task.head_dim;
      const bool whole = at % kPanel == 0 && i + kPanel <= count;
      finite = static_cast<__mmask16>(
          finite & (whole ? write_k_panel(task, source, panel) : write_k_token(task, source, panel + at % kPanel)));
      i += whole ? kPanel : 1;
    }
    for (int i = 0; i < count; ++i) {
      const int at = token + i;
      finite = static_cast<__mmask16>(finite & write_v_token(task, from_v + i * task.v_stride, v + at % 16 * 32 + at / 16 * 16));
    }
  }
  return finite;
}

}  // namespace

bool kv_write_avx512(const KvWriteTask& task) {
  __mmask16 finite = 0xffff;
  for (int i = 0; i < task.count;) {
    const int room = kBlock - (task.position + i) % kBlock;
    const int count = room < task.count - i ? room : task.count - i;
    finite = static_cast<__mmask16>(finite & write_block(task, i, count));
    i += count;
  }
  return finite == 0xffff;
}

}  // namespace linnet::cpu
