// What attention's AVX-512 and AMX kernels share. Internal: included only by files that are built for one instruction set, and
// kept in an unnamed namespace so that no other file can be linked with this code.
//
// One 64-byte line of K or V holds two rows of 16 columns. Each f16 is the exact sum of two bf16 (11 bits into 8 + 3); both rows'
// parts are zipped into one row of a bf16 matrix operand by a shift and a ternary-logic step. Per split: scores S = q K with the
// products lo.hi, hi.hi, hi.lo for each 32 dims; the row's maximum; P = 2^(S - max); its sum; P V in the same way. A masked key
// has p = +0, which changes no bit of a sum, so a row does not notice what is computed beside it.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/attention_kernel.h"

namespace linnet::cpu {
namespace {

#define LINNET_INLINE inline __attribute__((always_inline))

using F16 = std::uint16_t;
using Bf16 = std::uint16_t;

constexpr int kBlock = 32;  // tokens of a KV block
constexpr int kSplitBlocks = kSplitTokens / kBlock;
constexpr int kScoreStride = kSplitTokens + 16;  // floats; off the 2 KiB stride that would fall into two sets of L1
constexpr int kWeightStride = 2 * kScoreStride;  // bf16: P takes the place of S, per 32 keys a line of hi and a line of lo parts
constexpr int kTile = 512;                       // bf16 in a tile
constexpr float kNegativeInfinity = -__builtin_inff();

LINNET_INLINE int at_least(int x, int least) { return x < least ? least : x; }
LINNET_INLINE int at_most(int x, int most) { return x > most ? most : x; }

// 2^x for x <= 0, relative error 1.5e-7: a polynomial for the fraction, exact scaling for the rest.
LINNET_INLINE __m512 exp2_not_positive(__m512 x) {
  const __m512 r = _mm512_reduce_ps(x, 0x09);  // x - floor(x)
  __m512 p = _mm512_set1_ps(0.0018775766948238015F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.00898933969438076F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.05582631751894951F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.24015361070632935F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.6931530833244324F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.9999999403953552F));
  return _mm512_scalef_ps(p, x);  // p * 2^floor(x)
}
LINNET_INLINE float exp2_not_positive(float x) { return _mm512_cvtss_f32(exp2_not_positive(_mm512_set1_ps(x))); }

LINNET_INLINE __m512i upper_mask() { return _mm512_set1_epi32(static_cast<int>(0xffff0000U)); }
LINNET_INLINE __m512 upper(__m512 x) { return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), upper_mask())); }

// A split's scores on their way to cap * tanh(s), for the units of 32 keys [from, to): tanh(x) = 1 - 2 / (e^2x + 1), of which the
// error is that of f32 beside 1. It is no error of a weight that matters: those of a split differ by less than e^(2 cap).
LINNET_INLINE void cap_scores(float* s, int from, int to, float cap) {
  const __m512 one = _mm512_set1_ps(1.0F);
  const __m512 factor = _mm512_set1_ps(cap);
  for (int i = from * 32; i < to * 32; i += 16) {
    const __m512 x = _mm512_load_ps(s + i);
    // e^(-2|x|) <= 1, so that nothing overflows; the sign comes back at the end.
    const __m512 e = exp2_not_positive(_mm512_mul_ps(_mm512_abs_ps(x), _mm512_set1_ps(-2.8853900817779268F)));
    const __m512 tanh = _mm512_div_ps(_mm512_sub_ps(one, e), _mm512_add_ps(one, e));
    const __m512i sign = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN));
    _mm512_store_ps(s + i, _mm512_mul_ps(_mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(tanh), sign)), factor));
  }
}

// Pairs (even, odd) of bf16, by truncation.
LINNET_INLINE __m512i zip_upper(__m512 even, __m512 odd) {
  return _mm512_ternarylogic_epi32(upper_mask(), _mm512_castps_si512(odd), _mm512_srli_epi32(_mm512_castps_si512(even), 16),
                                   0xca);
}

// To bf16, nearest even, left in the upper halves. NaN becomes the plain one: its payload must not round over into another
// number.
LINNET_INLINE __m512 round_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512 rounded = upper(_mm512_castsi512_ps(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_mov_ps(rounded, nan, _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)));
}

// 32 consecutive bf16 from the upper halves of two vectors.
LINNET_INLINE __m512i pack_upper(__m512 x0, __m512 x1) {
  const __m256i a = _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(x0), 16));
  const __m256i b = _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(x1), 16));
  return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
}

LINNET_INLINE void prefetch_l2(const F16* address) { _mm_prefetch(reinterpret_cast<const char*>(address), _MM_HINT_T1); }

LINNET_INLINE __m512 load_halves(const F16* address) {
  return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(address)));
}

// Lines of f16 to rows of bf16 operands; hi + lo is exact. Lines of `ahead` come into L2 meanwhile (L1's few line fill buffers
// would limit that); null: none.
LINNET_INLINE void split_lines(const F16* source, Bf16* hi, Bf16* lo, int lines, const F16* ahead) {
#pragma GCC unroll 4
  for (int i = 0; i < lines; ++i) {
    if (ahead != nullptr) prefetch_l2(ahead + i * 32);
    const __m512 x0 = load_halves(source + i * 32);
    const __m512 x1 = load_halves(source + i * 32 + 16);
    _mm512_store_si512(hi + i * 32, zip_upper(x0, x1));
    _mm512_store_si512(lo + i * 32, zip_upper(_mm512_sub_ps(x0, upper(x0)), _mm512_sub_ps(x1, upper(x1))));
  }
}

// Keys [begin, end) of a split.
struct KeyRange {
  int begin;
  int end;
  LINNET_INLINE bool empty() const { return begin >= end; }
};

// One row of one split: scores become weights in place, in units of 32 keys, so that they can be dealt out between tile
// instructions.
struct SoftmaxRow {
  const float* s;
  Bf16* hi;  // written over s
  int low;   // units [low, full) are seen whole
  int full;
  unsigned whole;  // how many those are
  KeyRange keys;
  KeyRange units;  // whose weights are read
  float maximum;
  __m512 maximums, sum0, sum1;

  // Of 16 keys from `at` on, those that the row sees.
  LINNET_INLINE __mmask16 seen(int at) const {
    const int begin = at_most(at_least(keys.begin - at, 0), 16);
    const int end = at_most(at_least(keys.end - at, 0), 16);
    return static_cast<__mmask16>(((1 << end) - 1) & ~((1 << begin) - 1));
  }

  // visible: the keys that the row sees; read: those whose weights are read, in multiples of 32.
  LINNET_INLINE void begin(float* scores, KeyRange visible, KeyRange read) {
    s = scores;
    hi = reinterpret_cast<Bf16*>(scores);
    keys = visible;
    low = (keys.begin + 31) / 32;
    full = keys.end / 32;
    whole = static_cast<unsigned>(at_least(full - low, 0));
    units = {read.begin / 32, read.end / 32};
    __m512 a = _mm512_set1_ps(kNegativeInfinity);
    __m512 b = a;
    for (int c = low; c < full; ++c) {
      a = _mm512_max_ps(a, _mm512_load_ps(s + c * 32));
      b = _mm512_max_ps(b, _mm512_load_ps(s + c * 32 + 16));
    }
    if (!keys.empty()) {  // the ends, if they are no whole units
      if (keys.begin % 32 != 0) take_maximum(a, b, keys.begin / 32);
      if (keys.end % 32 != 0) take_maximum(a, b, full);
    }
    maximum = _mm512_reduce_max_ps(_mm512_max_ps(a, b));
    maximums = _mm512_set1_ps(maximum);
    sum0 = sum1 = _mm512_setzero_ps();
  }
  LINNET_INLINE void take_maximum(__m512& a, __m512& b, int c) const {
    a = _mm512_mask_max_ps(a, seen(c * 32), a, _mm512_load_ps(s + c * 32));
    b = _mm512_mask_max_ps(b, seen(c * 32 + 16), b, _mm512_load_ps(s + c * 32 + 16));
  }
  LINNET_INLINE void emit(int c, __m512 p0, __m512 p1) {
    _mm512_store_si512(hi + c * 64 + 32, zip_upper(_mm512_sub_ps(p0, upper(p0)), _mm512_sub_ps(p1, upper(p1))));
    sum0 = _mm512_add_ps(sum0, p0);
    sum1 = _mm512_add_ps(sum1, p1);
    _mm512_store_si512(hi + c * 64, zip_upper(p0, p1));
  }
  LINNET_INLINE void run(int from, int to) {
    for (int c = at_least(from, units.begin); c < to; ++c) {
      if (c >= units.end) return;
      const __m512 p0 = exp2_not_positive(_mm512_sub_ps(_mm512_load_ps(s + c * 32), maximums));
      const __m512 p1 = exp2_not_positive(_mm512_sub_ps(_mm512_load_ps(s + c * 32 + 16), maximums));
      if (static_cast<unsigned>(c - low) < whole) {
        emit(c, p0, p1);
      } else {  // the diagonal, the window's edge and what lies beyond them
        emit(c, _mm512_maskz_mov_ps(seen(c * 32), p0), _mm512_maskz_mov_ps(seen(c * 32 + 16), p1));
      }
    }
  }
  LINNET_INLINE float sum() const { return _mm512_reduce_add_ps(_mm512_add_ps(sum0, sum1)); }
};

// A split's (maximum, sum, weighted V) into a row's running ones; splits ascending.
template <int D>
LINNET_INLINE void merge_split(bool first, float m, float l, const float* o, float& running_m, float& running_l,
                               float* running_o) {
  if (first) {
    running_m = m;
    running_l = l;
    for (int d = 0; d < D; d += 16) _mm512_store_ps(running_o + d, _mm512_load_ps(o + d));
    return;
  }
  const float top = m > running_m ? m : running_m;
  const float old_factor = exp2_not_positive(running_m - top);
  const float new_factor = exp2_not_positive(m - top);
  running_m = top;
  running_l = __builtin_fmaf(l, new_factor, running_l * old_factor);
  for (int d = 0; d < D; d += 16) {
    const __m512 old_part = _mm512_mul_ps(_mm512_load_ps(running_o + d), _mm512_set1_ps(old_factor));
    _mm512_store_ps(running_o + d, _mm512_fmadd_ps(_mm512_load_ps(o + d), _mm512_set1_ps(new_factor), old_part));
  }
}

template <int D>
LINNET_INLINE void write_row(const float* o, float l, float* out) {
  const __m512 inverse = _mm512_set1_ps(1.0F / l);
  for (int d = 0; d < D; d += 16) _mm512_storeu_ps(out + d, _mm512_mul_ps(_mm512_load_ps(o + d), inverse));
}

// What a thread needs; query rows are numbered row * group + head.
template <int D>
struct AttentionScratch {
  Bf16* q_hi;  // [row tile][dim / 32][16][32]
  Bf16* q_lo;
  float* o;  // [rows][D] running state, if the task has all splits
  float* m;  // [rows]
  float* l;
  float* split_m;  // [rows] of the split under way
  float* split_l;
  float* split_o;  // [32][D]
  Bf16* k_hi;      // [512 * D] a split as matrix operands
  Bf16* k_lo;
  Bf16* v_hi;
  Bf16* v_lo;
  float* scores[3];  // [32][kScoreStride] scores, then weights

  std::size_t bytes;

  LINNET_INLINE AttentionScratch(std::byte* base, int group) {
    const auto rows = static_cast<std::size_t>((attention_task_rows_max(D, group) + 31) / 32 * 32);
    std::size_t at = 0;
    const auto floats = [&](std::size_t count) __attribute__((always_inline)) {
      float* const array = base == nullptr ? nullptr : reinterpret_cast<float*>(base + at);
      at += count * sizeof(float);
      return array;
    };
    const auto halves = [&](std::size_t count) __attribute__((always_inline)) {
      return reinterpret_cast<Bf16*>(floats(count / 2));
    };
    q_hi = halves(rows * D);
    q_lo = halves(rows * D);
    o = floats(rows * D);
    m = floats(rows);
    l = floats(rows);
    split_m = floats(rows);
    split_l = floats(rows);
    split_o = floats(32 * D);
    k_hi = halves(kSplitTokens * D);
    k_lo = halves(kSplitTokens * D);
    v_hi = halves(kSplitTokens * D);
    v_lo = halves(kSplitTokens * D);
    for (float*& s : scores) s = floats(32 * kScoreStride);
    bytes = at;
  }
};

// A task with its scratch: what both kernels do the same way around their products.
template <int D>
struct AttentionWork {
  static constexpr int kHalf = kBlock * D;  // elements of K, or of V, of a head in a block
  static constexpr int kChunks = D / 32;    // operands along the dims of q and K
  static constexpr int kPanels = D / 16;    // operands along the dims of V

  const AttentionTask task;  // a copy: no store to scratch can be taken for a change of it
  AttentionScratch<D> scratch;
  int n;      // query rows
  int total;  // keys that the last row sees

  LINNET_INLINE AttentionWork(const AttentionTask& t, std::byte* memory)
      : task(t), scratch(memory, t.group), n(t.rows * t.group), total(t.position + t.rows) {}

  LINNET_INLINE const F16* k_of(int block) const { return reinterpret_cast<const F16*>(task.blocks[block] + task.k_offset); }
  LINNET_INLINE const F16* v_of(int block) const { return k_of(block) + kHalf; }
  // Blocks of a split that any row sees. What lies before them may be gone.
  LINNET_INLINE int block_begin(int split) const {
    return at_most(at_least(task.first_key(0) - split * kSplitTokens, 0), kSplitTokens - 1) / kBlock;
  }
  LINNET_INLINE int block_end(int split) const {
    return (at_most(total - split * kSplitTokens, kSplitTokens) + kBlock - 1) / kBlock;
  }
  // Keys of a split that a query row sees.
  LINNET_INLINE KeyRange visible(int row, int split) const {
    const int token = row / task.group;
    const int first = split * kSplitTokens;
    return {at_most(at_least(task.first_key(token) - first, 0), kSplitTokens),
            at_most(at_least(task.position + token + 1 - first, 0), kSplitTokens)};
  }

  // q, scaled, as two bf16 parts in operand order; rows up to a whole tile (from 17 rows on: a pair of tiles) are zero.
  void load_q() const {
    const __m512 scale = _mm512_set1_ps(task.scale);
    const int padded = n <= 16 ? 16 : (n + 31) / 32 * 32;
    for (int i = 0; i < padded; ++i) {
      const float* source = task.q + i / task.group * task.q_stride + i % task.group * D;
      for (int c = 0; c < kChunks; ++c) {
        const std::size_t at = (static_cast<std::size_t>(i / 16) * kChunks + static_cast<std::size_t>(c)) * kTile +
                               static_cast<std::size_t>(i % 16 * 32);
        if (i >= n) {
          _mm512_store_si512(scratch.q_hi + at, _mm512_setzero_si512());
          _mm512_store_si512(scratch.q_lo + at, _mm512_setzero_si512());
          continue;
        }
        const __m512 x0 = _mm512_mul_ps(_mm512_loadu_ps(source + c * 32), scale);
        const __m512 x1 = _mm512_mul_ps(_mm512_loadu_ps(source + c * 32 + 16), scale);
        const __m512 h0 = round_bf16(x0);
        const __m512 h1 = round_bf16(x1);
        _mm512_store_si512(scratch.q_hi + at, pack_upper(h0, h1));
        _mm512_store_si512(scratch.q_lo + at, pack_upper(round_bf16(_mm512_sub_ps(x0, h0)), round_bf16(_mm512_sub_ps(x1, h1))));
      }
    }
  }

  // Takes in what a row got from a split; `o` is its weighted V.
  LINNET_INLINE void take_in(int split, int row, const float* o) const {
    const float m = scratch.split_m[row];
    const float l = scratch.split_l[row];
    if (task.partials == nullptr) {
      merge_split<D>(split == task.first_split(row / task.group), m, l, o, scratch.m[row], scratch.l[row],
                     scratch.o + static_cast<std::ptrdiff_t>(row) * D);
      return;
    }
    float* const record = task.partials + (static_cast<std::ptrdiff_t>(split - task.partials_begin) * n + row) * (D + 16);
    for (int d = 0; d < D; d += 16) _mm512_store_ps(record + d, _mm512_load_ps(o + d));
    record[D] = m;
    record[D + 1] = l;
  }

  // Scores of a split's held rows on their way to cap * tanh(s), if the task has a cap: between the products and the softmax, and
  // out of the way of both.
  LINNET_INLINE void cap_rows(float* scores, int first, int rows, int split) const {
    for (int r = 0; r < at_most(rows, n - first); ++r) {
      const KeyRange keys = visible(first + r, split);
      if (!keys.empty()) cap_scores(scores + r * kScoreStride, keys.begin / 32, (keys.end + 31) / 32, task.cap);
    }
  }

  LINNET_INLINE float* out_of(int row) const { return task.out + row / task.group * task.out_stride + row % task.group * D; }

  void write_out() const {
    if (task.partials != nullptr) return;
    for (int i = 0; i < n; ++i) write_row<D>(scratch.o + static_cast<std::ptrdiff_t>(i) * D, scratch.l[i], out_of(i));
  }
};

template <int D>
void merge_partials(const AttentionTask& task) {
  const int n = task.rows * task.group;
  for (int i = 0; i < n; ++i) {
    alignas(64) float o[D];
    float m = 0;
    float l = 0;
    const int first = task.first_split(i / task.group);
    for (int split = first; split <= task.last_split(i / task.group); ++split) {
      const float* const record = task.partials + (static_cast<std::ptrdiff_t>(split - task.partials_begin) * n + i) * (D + 16);
      merge_split<D>(split == first, record[D], record[D + 1], record, m, l, o);
    }
    write_row<D>(o, l, task.out + i / task.group * task.out_stride + i % task.group * D);
  }
}

template <int D>
std::size_t attention_scratch_bytes(std::int32_t group) {
  return AttentionScratch<D>(nullptr, group).bytes;
}

}  // namespace
}  // namespace linnet::cpu
