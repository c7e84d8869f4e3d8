// Attention on AMX bf16 tiles. Tiles 0-3 accumulate, 4-5 hold operand A (rows of q or weights), 6-7 operand B (K or V).
#include "backends/cpu/kernels/amx.h"
#include "backends/cpu/kernels/attention_vector.h"

namespace linnet::cpu {
namespace {

constexpr int kAhead = 4;  // blocks that the path for few rows prefetches ahead

void configure_tiles(int a_rows) {
  amx::TileConfig config;
  for (int i = 0; i < 8; ++i) config.set(i, i < 6 ? a_rows : 16, 64);
  amx::configure(config);
}

template <int kTileIndex>
LINNET_INLINE void load_line(const Bf16* rows) {
  amx::load<kTileIndex>(rows, 64);
}

// Up to 16 query rows: every block is split once and used at once, out of L1. The lines of block b + 1 are split between the tile
// instructions of block b.
template <int D>
struct FewRows : AttentionWork<D> {
  using Work = AttentionWork<D>;
  using Work::kChunks, Work::kHalf, Work::kPanels, Work::n, Work::scratch, Work::task;
  static constexpr int kStep = kChunks * kTile;  // from the first 16 tokens of K to the others

  int last_block;  // of the task

  LINNET_INLINE FewRows(const AttentionTask& t, std::byte* memory)
      : Work(t, memory), last_block(at_most((Work::total - 1) / kBlock, t.split_end * kSplitBlocks - 1)) {}

  LINNET_INLINE void split_k(int split, int b, int from, int to) const {
    const int blocks = Work::block_end(split);
    if (b >= blocks) return;
    const int first = split * kSplitBlocks;
    const int at = from * 32;
    const int ahead = b + kAhead;
    const int wrapped = at_most(Work::block_begin(split) + ahead - blocks, blocks - 1);
    const F16* const next = ahead < blocks ? Work::k_of(first + ahead) : Work::v_of(first + wrapped);
    split_lines(Work::k_of(first + b) + at, scratch.k_hi + (b & 1) * kHalf + at, scratch.k_lo + (b & 1) * kHalf + at, to - from,
                next + at);
  }

  // 16 rows x 32 keys, into accumulators A and B.
  template <int A, int B>
  LINNET_INLINE void scores(int split, int b) const {
    const Bf16* const hi = scratch.k_hi + (b & 1) * kHalf;
    const Bf16* const lo = scratch.k_lo + (b & 1) * kHalf;
    float* const s = scratch.scores[0] + b * kBlock;
    amx::zero<A>();
    amx::zero<B>();
    for (int c = 0; c < kChunks; ++c) {
      load_line<4>(scratch.q_lo + c * kTile);
      load_line<6>(hi + c * kTile);
      load_line<7>(hi + kStep + c * kTile);
      load_line<5>(scratch.q_hi + c * kTile);
      amx::dot_bf16<A, 4, 6>();
      amx::dot_bf16<B, 4, 7>();
      amx::dot_bf16<A, 5, 6>();
      amx::dot_bf16<B, 5, 7>();
      split_k(split, b + 1, c * 32, c * 32 + 16);
      load_line<6>(lo + c * kTile);
      load_line<7>(lo + kStep + c * kTile);
      amx::dot_bf16<A, 5, 6>();
      amx::dot_bf16<B, 5, 7>();
      split_k(split, b + 1, c * 32 + 16, c * 32 + 32);
    }
    amx::store<A>(s, kScoreStride * 4);
    amx::store<B>(s + 16, kScoreStride * 4);
  }

  LINNET_INLINE void split_v(int split, int b, int dim, int from, int to) const {
    const int blocks = Work::block_end(split);
    if (b >= blocks) return;
    const int first = split * kSplitBlocks;
    const int at = from * 32;
    const int ahead = b + kAhead;
    const F16* next = Work::v_of(first + b);  // nothing is left to fetch: what is being read
    if (ahead < blocks) {
      next = Work::v_of(first + ahead) + dim * kBlock;
    } else if (dim + 64 < D) {
      next = Work::v_of(first + at_most(Work::block_begin(split) + ahead - blocks, blocks - 1)) + (dim + 64) * kBlock;
    } else if (first + ahead <= last_block) {
      next = Work::k_of(first + ahead);
    }
    split_lines(Work::v_of(first + b) + dim * kBlock + at, scratch.v_hi + (b & 1) * 4 * kTile + at,
                scratch.v_lo + (b & 1) * 4 * kTile + at, to - from, next + at);
  }

  // 16 rows x 64 dims of weighted V.
  LINNET_INLINE void weigh_64(int split, int dim) const {
    const int blocks = Work::block_end(split);
    const Bf16* const p = reinterpret_cast<const Bf16*>(scratch.scores[0]);
    amx::zero<0>(), amx::zero<1>(), amx::zero<2>(), amx::zero<3>();
    const int begin = Work::block_begin(split);
    split_v(split, begin, dim, 0, 64);
    for (int b = begin; b < blocks; ++b) {
      const Bf16* const hi = scratch.v_hi + (b & 1) * 4 * kTile;
      const Bf16* const lo = scratch.v_lo + (b & 1) * 4 * kTile;
      amx::load<5>(p + b * 64, kWeightStride * 2);
      amx::load<4>(p + b * 64 + 32, kWeightStride * 2);
      load_line<6>(hi), load_line<7>(hi + kTile);
      amx::dot_bf16<0, 4, 6>(), amx::dot_bf16<1, 4, 7>(), amx::dot_bf16<0, 5, 6>(), amx::dot_bf16<1, 5, 7>();
      split_v(split, b + 1, dim, 0, 16);
      load_line<6>(hi + 2 * kTile), load_line<7>(hi + 3 * kTile);
      amx::dot_bf16<2, 4, 6>(), amx::dot_bf16<3, 4, 7>(), amx::dot_bf16<2, 5, 6>(), amx::dot_bf16<3, 5, 7>();
      split_v(split, b + 1, dim, 16, 32);
      load_line<6>(lo), load_line<7>(lo + kTile);
      amx::dot_bf16<0, 5, 6>(), amx::dot_bf16<1, 5, 7>();
      split_v(split, b + 1, dim, 32, 48);
      load_line<6>(lo + 2 * kTile), load_line<7>(lo + 3 * kTile);
      amx::dot_bf16<2, 5, 6>(), amx::dot_bf16<3, 5, 7>();
      split_v(split, b + 1, dim, 48, 64);
    }
    float* const o = scratch.split_o + dim;
    amx::store<0>(o, D * 4), amx::store<1>(o + 16, D * 4), amx::store<2>(o + 32, D * 4), amx::store<3>(o + 48, D * 4);
  }

  // The last 32 dims where D is no multiple of 64.
  LINNET_INLINE void weigh_32(int split, int dim) const {
    const int blocks = Work::block_end(split);
    const Bf16* const p = reinterpret_cast<const Bf16*>(scratch.scores[0]);
    amx::zero<0>(), amx::zero<1>();
    const int begin = Work::block_begin(split);
    split_v(split, begin, dim, 0, 32);
    for (int b = begin; b < blocks; ++b) {
      const Bf16* const hi = scratch.v_hi + (b & 1) * 4 * kTile;
      const Bf16* const lo = scratch.v_lo + (b & 1) * 4 * kTile;
      amx::load<5>(p + b * 64, kWeightStride * 2);
      amx::load<4>(p + b * 64 + 32, kWeightStride * 2);
      load_line<6>(hi), load_line<7>(hi + kTile);
      amx::dot_bf16<0, 4, 6>(), amx::dot_bf16<1, 4, 7>(), amx::dot_bf16<0, 5, 6>(), amx::dot_bf16<1, 5, 7>();
      split_v(split, b + 1, dim, 0, 16);
      load_line<6>(lo), load_line<7>(lo + kTile);
      amx::dot_bf16<0, 5, 6>(), amx::dot_bf16<1, 5, 7>();
      split_v(split, b + 1, dim, 16, 32);
    }
    amx::store<0>(scratch.split_o + dim, D * 4), amx::store<1>(scratch.split_o + dim + 16, D * 4);
  }

  void run() const {
    configure_tiles((n + 3) / 4 * 4);  // 3 rows take longer than 4
    Work::load_q();
    for (int split = task.split_begin; split < task.split_end; ++split) {
      const int blocks = Work::block_end(split);
      const int begin = Work::block_begin(split);
      split_k(split, begin, 0, kHalf / 32);
      for (int b = begin; b < blocks; b += 2) {  // two pairs of accumulators in turn
        scores<0, 1>(split, b);
        if (b + 1 < blocks) scores<2, 3>(split, b + 1);
      }
      if (task.cap != 0) [[unlikely]]
        Work::cap_rows(scratch.scores[0], 0, n, split);
      for (int i = 0; i < n; ++i) {
        SoftmaxRow row;
        row.begin(scratch.scores[0] + i * kScoreStride, Work::visible(i, split), {begin * kBlock, blocks * kBlock});
        row.run(0, blocks);
        scratch.split_m[i] = row.maximum;
        scratch.split_l[i] = row.sum();
      }
      for (int dim = 0; dim + 64 <= D; dim += 64) weigh_64(split, dim);
      if constexpr (D % 64 != 0) weigh_32(split, D - 32);
      for (int i = 0; i < n; ++i) {
        if (!Work::visible(i, split).empty()) Work::take_in(split, i, scratch.split_o + i * D);
      }
    }
    Work::write_out();
    amx::release();
  }
};

// From 17 query rows on: keys and values of a split are split into parts once, then pairs of row tiles run over them in a
// pipeline: scores of pair i (tiles) beside the softmax of pair i - 1 (vectors), then weighted V of pair i - 2 (tiles) beside the
// other half of that softmax.
template <int D>
struct ManyRows : AttentionWork<D> {
  using Work = AttentionWork<D>;
  using Work::kChunks, Work::kHalf, Work::kPanels, Work::n, Work::scratch, Work::task;
  static constexpr int kStep = kChunks * kTile;

  int pairs;
  int split = 0;
  int pair_begin = 0;  // pairs with a row that sees keys of the split
  int pair_end = 0;

  LINNET_INLINE ManyRows(const AttentionTask& t, std::byte* memory) : Work(t, memory), pairs((Work::n + 31) / 32) {}

  LINNET_INLINE KeyRange keys_of(int row) const { return row < n ? Work::visible(row, split) : KeyRange{0, 0}; }
  // Blocks that a pair sees: [block_begin_of, block_end_of).
  LINNET_INLINE int block_begin_of(int pair) const { return keys_of(pair * 32).begin / kBlock; }
  LINNET_INLINE int block_end_of(int pair) const { return (keys_of(at_most(pair * 32 + 31, n - 1)).end + kBlock - 1) / kBlock; }
  LINNET_INLINE float* scores_of(int pair) const { return scratch.scores[pair % 3]; }

  // 16 of the 32 keys of block g, into accumulators A (rows 0-15) and B (16-31). between(phase) is called 2 * kChunks times.
  template <int A, int B, class Between, class Stored>
  LINNET_INLINE void half_scores(const Bf16* q_lo, const Bf16* q_hi, const Bf16* k_lo, const Bf16* k_hi, Between between,
                                 Stored store) const {
    amx::zero<A>();
    amx::zero<B>();
#pragma GCC unroll 4
    for (int c = 0; c < kChunks; ++c) {
      load_line<4>(q_lo + c * kTile), load_line<6>(k_hi + c * kTile), load_line<5>(q_lo + kStep + c * kTile);
      amx::dot_bf16<A, 4, 6>(), amx::dot_bf16<B, 5, 6>();
      load_line<4>(q_hi + c * kTile), load_line<5>(q_hi + kStep + c * kTile), load_line<7>(k_lo + c * kTile);
      amx::dot_bf16<A, 4, 6>(), amx::dot_bf16<B, 5, 6>();
      if (c == 0) store();
      between(c * 2);
      amx::dot_bf16<A, 4, 7>(), amx::dot_bf16<B, 5, 7>();
      between(c * 2 + 1);
    }
  }

  // 32 rows x 32 keys. A pair of accumulators is stored while the other is at work, the second not before the next call (or
  // store_second), so that no store waits for the tile unit.
  template <class Between>
  LINNET_INLINE void scores(int pair, int g, bool first, Between between) const {
    float* const s = scores_of(pair);
    const Bf16* const q_lo = scratch.q_lo + static_cast<std::ptrdiff_t>(pair) * 2 * kStep;
    const Bf16* const q_hi = scratch.q_hi + static_cast<std::ptrdiff_t>(pair) * 2 * kStep;
    const Bf16* const k_hi = scratch.k_hi + static_cast<std::ptrdiff_t>(g) * 2 * kStep;
    const Bf16* const k_lo = scratch.k_lo + static_cast<std::ptrdiff_t>(g) * 2 * kStep;
    half_scores<0, 1>(
        q_lo, q_hi, k_lo, k_hi, between, [&]() __attribute__((always_inline)) {
          if (!first) store_second(s, g - 1);
        });
    half_scores<2, 3>(
        q_lo, q_hi, k_lo + kStep, k_hi + kStep, [&](int phase) __attribute__((always_inline)) { between(2 * kChunks + phase); },
        [&]() __attribute__((always_inline)) {
          amx::store<0>(s + g * kBlock, kScoreStride * 4);
          amx::store<1>(s + 16 * kScoreStride + g * kBlock, kScoreStride * 4);
        });
  }
  LINNET_INLINE void store_second(float* s, int g) const {
    amx::store<2>(s + g * kBlock + 16, kScoreStride * 4);
    amx::store<3>(s + 16 * kScoreStride + g * kBlock + 16, kScoreStride * 4);
  }

  // 32 rows x 32 dims (panels d, d + 1) of the keys of block b. between(phase) is called 3 times.
  template <class Between>
  LINNET_INLINE void weigh(int d, int b, const Bf16* p, Between between) const {
    const std::ptrdiff_t at = (static_cast<std::ptrdiff_t>(b) * kPanels + d) * kTile;
    const Bf16* const hi = scratch.v_hi + at;
    const Bf16* const lo = scratch.v_lo + at;
    const Bf16* const p_hi = p + b * 64;
    const Bf16* const p_lo = p_hi + 32;
    amx::load<4>(p_lo, kWeightStride * 2), load_line<6>(hi), amx::load<5>(p_lo + 16 * kWeightStride, kWeightStride * 2),
        load_line<7>(hi + kTile);
    amx::dot_bf16<0, 4, 6>(), amx::dot_bf16<1, 4, 7>(), amx::dot_bf16<2, 5, 6>(), amx::dot_bf16<3, 5, 7>();
    amx::load<4>(p_hi, kWeightStride * 2), amx::load<5>(p_hi + 16 * kWeightStride, kWeightStride * 2);
    between(0);
    amx::dot_bf16<0, 4, 6>(), amx::dot_bf16<1, 4, 7>(), amx::dot_bf16<2, 5, 6>(), amx::dot_bf16<3, 5, 7>();
    between(1);
    load_line<6>(lo), load_line<7>(lo + kTile);
    amx::dot_bf16<0, 4, 6>(), amx::dot_bf16<1, 4, 7>(), amx::dot_bf16<2, 5, 6>(), amx::dot_bf16<3, 5, 7>();
    between(2);
  }

  // The softmax of a pair's rows, one at a time. Without a pair (index out of range) there is nothing to do.
  struct Softmax {
    const ManyRows& work;
    int pair;
    bool any;
    KeyRange read;
    SoftmaxRow row;

    LINNET_INLINE Softmax(const ManyRows& w, int p)
        : work(w),
          pair(p),
          any(p >= w.pair_begin && p < w.pair_end),
          read(any ? KeyRange{w.block_begin_of(p) * kBlock, w.block_end_of(p) * kBlock} : KeyRange{0, 0}) {}
    LINNET_INLINE void begin(int r) { row.begin(work.scores_of(pair) + r * kScoreStride, work.keys_of(pair * 32 + r), read); }
    LINNET_INLINE void finish(int r) const {
      work.scratch.split_m[pair * 32 + r] = row.maximum;
      work.scratch.split_l[pair * 32 + r] = row.sum();
    }
    LINNET_INLINE void whole(int r) {
      begin(r);
      row.run(0, kSplitBlocks);
      finish(r);
    }
  };

  // Scores of pair `a`, and between them rows 0-15 of the softmax of the pair before, one row per 32 keys.
  LINNET_INLINE void score_pair(int a, Softmax& soft) const {
    const int begin = a < pair_end ? block_begin_of(a) : 0;
    const int end = a < pair_end ? block_end_of(a) : 0;
    for (int g = 0; g < kSplitBlocks; ++g) {
      const bool scored = g >= begin && g < end;
      if (scored && soft.any) {
        soft.begin(g);
        scores(
            a, g, g == begin, [&](int phase) __attribute__((always_inline)) {
              soft.row.run(phase * 16 / (4 * kChunks), (phase + 1) * 16 / (4 * kChunks));
            });
        soft.finish(g);
      } else if (scored) {
        scores(a, g, g == begin, [](int) __attribute__((always_inline)){});
      } else if (soft.any) {
        soft.whole(g);
      }
      if (g == end - 1) store_second(scores_of(a), g);
    }
  }

  // Weighted V of pair `w`, and between it rows 16-31 of the softmax of the pair after, one row per kChunks blocks.
  LINNET_INLINE void weigh_pair(int w, bool any, Softmax& soft) const {
    const int begin = any ? block_begin_of(w) : 0;
    const int blocks = any ? block_end_of(w) : 0;
    const Bf16* const p = reinterpret_cast<const Bf16*>(scratch.scores[any ? w % 3 : 0]);
    int r = 16;
    for (int d = 0; any && d < kPanels; d += 2) {
      amx::zero<0>(), amx::zero<1>(), amx::zero<2>(), amx::zero<3>();
      for (int b = begin; b < blocks; b += kChunks) {
        if (soft.any && b + kChunks <= blocks && r < 32) {
          soft.begin(r);
#pragma GCC unroll 4
          for (int j = 0; j < kChunks; ++j) {
            weigh(
                d, b + j, p, [&](int phase) __attribute__((always_inline)) {
                  const int at = j * 3 + phase;
                  soft.row.run(at * 16 / (3 * kChunks), (at + 1) * 16 / (3 * kChunks));
                });
          }
          soft.finish(r++);
        } else {
          for (int j = b; j < at_most(b + kChunks, blocks); ++j) weigh(d, j, p, [](int) __attribute__((always_inline)){});
        }
      }
      float* const o = scratch.split_o + d * 16;
      amx::store<0>(o, D * 4), amx::store<1>(o + 16, D * 4), amx::store<2>(o + 16 * D, D * 4),
          amx::store<3>(o + 16 * D + 16, D * 4);
    }
    for (; soft.any && r < 32; ++r) soft.whole(r);
  }

  void run_split() {
    const int first_block = split * kSplitBlocks;
    for (int b = Work::block_begin(split); b < Work::block_end(split); ++b) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(b) * kHalf;
      split_lines(Work::k_of(first_block + b), scratch.k_hi + at, scratch.k_lo + at, kHalf / 32, nullptr);
      split_lines(Work::v_of(first_block + b), scratch.v_hi + at, scratch.v_lo + at, kHalf / 32, nullptr);
    }
    // Rows before these lie before the split; the windows of those after them begin after it.
    for (pair_begin = 0; block_end_of(pair_begin) == 0;) ++pair_begin;
    for (pair_end = pairs; keys_of((pair_end - 1) * 32).begin == kSplitTokens;) --pair_end;
    for (int i = pair_begin; i < pair_end + 2; ++i) {
      const int weighed = i - 2;
      Softmax soft(*this, i - 1);
      if (task.cap != 0 && soft.any) [[unlikely]]
        Work::cap_rows(scores_of(i - 1), (i - 1) * 32, 32, split);
      score_pair(i, soft);
      weigh_pair(weighed, weighed >= pair_begin, soft);
      if (weighed < pair_begin) continue;
      for (int k = 0; k < 32; ++k) {
        const int row = weighed * 32 + k;
        if (!keys_of(row).empty()) Work::take_in(split, row, scratch.split_o + k * D);
      }
    }
  }

  void run() {
    configure_tiles(16);
    Work::load_q();
    for (split = task.split_begin; split < task.split_end; ++split) run_split();
    Work::write_out();
    amx::release();
  }
};

template <int D>
void run_task(const AttentionTask& task, std::byte* scratch) {
  if (task.rows * task.group <= 16) {
    FewRows<D>(task, scratch).run();
  } else {
    ManyRows<D>(task, scratch).run();
  }
}

template <int D>
AttentionKernel kernel() {
  return {.run = run_task<D>, .merge = merge_partials<D>, .scratch_bytes = attention_scratch_bytes<D>};
}

}  // namespace

AttentionKernel attention_kernel_amx(std::int32_t head_dim) {
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
