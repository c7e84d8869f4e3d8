// Attention without tiles, with the same bits: TDPBF16PS adds to its accumulator the sum of two chains of f32 fma, over even and
// over odd elements, each from zero. K is read with lane = token, V with lane = dim, so nothing is summed across lanes.
#include "backends/cpu/kernels/attention_vector.h"

namespace linnet::cpu {
namespace {

constexpr int kRowsAtOnce = 32;  // query rows whose scores of a split are held

// Row r of operand A begins at hi (lo) + r * stride.
struct OperandA {
  const Bf16* hi;
  const Bf16* lo;
  int stride;
};

// acc[r] += 32 products of A's row r with an operand B of 16 lines, as the tile unit does three times: lo.hi, hi.hi, hi.lo.
template <int R>
LINNET_INLINE void add_products(const OperandA& a, const F16* b, __m512 (&acc)[R]) {
  __m512 even[3][R];
  __m512 odd[3][R];
  for (int j = 0; j < 3; ++j) {
    for (int r = 0; r < R; ++r) even[j][r] = odd[j][r] = _mm512_setzero_ps();
  }
  const auto pair = [](const Bf16* address) __attribute__((always_inline)) {
    int both = 0;
    __builtin_memcpy(&both, address, sizeof both);
    return _mm512_set1_epi32(both);
  };
  const auto first = [](__m512i both) __attribute__((always_inline)) { return _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)); };
  const auto second = [](__m512i both) __attribute__((always_inline)) { return upper(_mm512_castsi512_ps(both)); };
  for (int k = 0; k < 16; ++k) {
    const __m512 x0 = load_halves(b + k * 32);
    const __m512 x1 = load_halves(b + k * 32 + 16);
    const __m512 hi0 = upper(x0);
    const __m512 hi1 = upper(x1);
    const __m512 lo0 = _mm512_sub_ps(x0, hi0);
    const __m512 lo1 = _mm512_sub_ps(x1, hi1);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m512i hi = pair(a.hi + r * a.stride + 2 * k);
      const __m512i lo = pair(a.lo + r * a.stride + 2 * k);
      even[0][r] = _mm512_fmadd_ps(first(lo), hi0, even[0][r]);
      odd[0][r] = _mm512_fmadd_ps(second(lo), hi1, odd[0][r]);
      even[1][r] = _mm512_fmadd_ps(first(hi), hi0, even[1][r]);
      odd[1][r] = _mm512_fmadd_ps(second(hi), hi1, odd[1][r]);
      even[2][r] = _mm512_fmadd_ps(first(hi), lo0, even[2][r]);
      odd[2][r] = _mm512_fmadd_ps(second(hi), lo1, odd[2][r]);
    }
  }
  for (int j = 0; j < 3; ++j) {
    for (int r = 0; r < R; ++r) acc[r] = _mm512_add_ps(acc[r], _mm512_add_ps(even[j][r], odd[j][r]));
  }
}

template <int D>
struct PlainRows : AttentionWork<D> {
  using Work = AttentionWork<D>;
  using Work::kChunks, Work::kPanels, Work::n, Work::scratch, Work::task;

  using Work::Work;

  // Scores of query rows first .. first + R - 1 (within one tile) with 16 keys; `row` is their place among those held.
  template <int R>
  void scores(int first, int row, const F16* k, float* s) const {
    __m512 acc[R];
    for (__m512& x : acc) x = _mm512_setzero_ps();
    for (int c = 0; c < kChunks; ++c) {
      const std::ptrdiff_t at = (static_cast<std::ptrdiff_t>(first / 16) * kChunks + c) * kTile + first % 16 * 32;
      add_products<R>({scratch.q_hi + at, scratch.q_lo + at, 32}, k + c * kTile, acc);
    }
    for (int r = 0; r < R; ++r) _mm512_store_ps(s + (row + r) * kScoreStride, acc[r]);
  }

  // Weighted V of R held rows for 16 dims.
  template <int R>
  void weigh(int row, int split, int panel) const {
    __m512 acc[R];
    for (__m512& x : acc) x = _mm512_setzero_ps();
    const Bf16* const p = reinterpret_cast<const Bf16*>(scratch.scores[0] + row * kScoreStride);
    for (int b = Work::block_begin(split); b < Work::block_end(split); ++b) {
      add_products<R>({p + b * 64, p + b * 64 + 32, kWeightStride}, Work::v_of(split * kSplitBlocks + b) + panel * kTile, acc);
    }
    for (int r = 0; r < R; ++r) _mm512_store_ps(scratch.split_o + (row + r) * D + panel * 16, acc[r]);
  }

  // f(rows as a constant, first row) for the held rows, four at a time.
  template <class F>
  LINNET_INLINE static void by_fours(int rows, F f) {
    int r = 0;
    for (; r + 4 <= rows; r += 4) f.template operator()<4>(r);
    if (rows - r == 3) f.template operator()<3>(r);
    if (rows - r == 2) f.template operator()<2>(r);
    if (rows - r == 1) f.template operator()<1>(r);
  }

  void run_split(int split, int first, int rows) const {
    const int blocks = Work::block_end(split);
    for (int b = Work::block_begin(split); b < blocks; ++b) {
      const F16* const k = Work::k_of(split * kSplitBlocks + b);
      if (b + 2 < blocks) prefetch_block(Work::k_of(split * kSplitBlocks + b + 2));
      for (int half = 0; half < 2; ++half) {
        by_fours(rows, [&]<int R>(int r) {
          scores<R>(first + r, r, k + half * kChunks * kTile, scratch.scores[0] + b * kBlock + half * 16);
        });
      }
    }
    if (task.cap != 0) [[unlikely]]
      Work::cap_rows(scratch.scores[0], first, rows, split);
    for (int r = 0; r < rows; ++r) {
      SoftmaxRow row;
      row.begin(scratch.scores[0] + r * kScoreStride, Work::visible(first + r, split),
                {Work::block_begin(split) * kBlock, blocks * kBlock});
      row.run(0, blocks);
      scratch.split_m[first + r] = row.maximum;
      scratch.split_l[first + r] = row.sum();
    }
    for (int panel = 0; panel < kPanels; ++panel) {
      by_fours(rows, [&]<int R>(int r) { weigh<R>(r, split, panel); });
    }
    for (int r = 0; r < rows; ++r) {
      if (!Work::visible(first + r, split).empty()) Work::take_in(split, first + r, scratch.split_o + r * D);
    }
  }

  LINNET_INLINE static void prefetch_block(const F16* k) {
    for (int line = 0; line < D; ++line) prefetch_l2(k + line * 32);
  }

  void run() const {
    Work::load_q();
    for (int first = 0; first < n; first += kRowsAtOnce) {
      const int rows = at_most(n - first, kRowsAtOnce);
      for (int split = task.split_begin; split < task.split_end; ++split) {
        if (Work::visible(first + rows - 1, split).end != 0 && Work::visible(first, split).begin != kSplitTokens)
          run_split(split, first, rows);
      }
    }
    Work::write_out();
  }
};

template <int D>
void run_task(const AttentionTask& task, std::byte* scratch) {
  PlainRows<D>(task, scratch).run();
}

template <int D>
AttentionKernel kernel() {
  return {.run = run_task<D>, .merge = merge_partials<D>, .scratch_bytes = attention_scratch_bytes<D>};
}

}  // namespace

AttentionKernel attention_kernel_avx512(std::int32_t head_dim) {
  switch (head_dim) {
    case 32:
      return kernel<32>();
    case 64:
      return kernel<64>();
    case 96:
      return kernel<96>();
    case 128:
      return kernel<128>();
    case 256:
      return kernel<256>();
    default:
      return {};
  }
}

}  // namespace linnet::cpu
