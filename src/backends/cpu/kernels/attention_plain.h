// Attention in plain f32, for instruction sets that bring nothing more than vectors: products and sums in one written order,
// along 16 tokens (scores) or 16 dims (weighted V), which are independent of each other. Internal: a file for one instruction set
// includes it with its own `Lanes`, in an unnamed namespace so that no other file can be linked with this code.
//
// Lanes is 16 floats with the static words load, store, splat, from_halves (finite ones), add, subtract, multiply, divide,
// maximum, magnitude, with_sign_of, exp2_not_positive, and multiply_add(acc, factor, x) = acc + factor * x.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/attention_kernel.h"

namespace linnet::cpu {
namespace {

constexpr int kBlock = 32;  // tokens of a KV block
constexpr int kLanes = 16;
constexpr int kSplitBlocks = kSplitTokens / kBlock;
constexpr int kRowsAtOnce = 32;  // query rows whose scores of a split are held
constexpr float kNegativeInfinity = -__builtin_inff();

template <class Lanes>
float exp2_not_positive(float x) {
  float lanes[kLanes];
  Lanes::store(lanes, Lanes::exp2_not_positive(Lanes::splat(x)));
  return lanes[0];
}

// A split's (maximum, sum, weighted V) into a row's running ones; splits ascending.
struct RunningRow {
  float* o;  // [dims]
  float& m;
  float& l;
};
template <class Lanes, int D>
void merge_split(bool first, const float* o, float m, float l, const RunningRow& into) {
  const float top = first || m > into.m ? m : into.m;
  const float old_factor = first ? 0.0F : exp2_not_positive<Lanes>(into.m - top);
  const float new_factor = first ? 1.0F : exp2_not_positive<Lanes>(m - top);
  for (int d = 0; d < D; d += kLanes) {
    const auto part = Lanes::multiply(Lanes::load(o + d), Lanes::splat(new_factor));
    Lanes::store(into.o + d, first ? part : Lanes::multiply_add(part, old_factor, Lanes::load(into.o + d)));
  }
  into.m = top;
  into.l = first ? l : into.l * old_factor + l * new_factor;
}

template <class Lanes, int D>
void write_row(const float* o, float l, float* out) {
  for (int d = 0; d < D; d += kLanes) Lanes::store(out + d, Lanes::multiply(Lanes::load(o + d), Lanes::splat(1.0F / l)));
}

template <int D>
struct PlainScratch {
  float* lines;    // [32 * D] K or V of a block in f32
  float* q;        // [32][D] scaled
  float* weights;  // [32][512] scores, then weights; within 32 tokens those are in the order of V's lines
  float* split_o;  // [32][D]
  float* o;        // [rows][D] running state
  float* m;        // [rows]
  float* l;        // [rows]
  std::size_t bytes = 0;

  PlainScratch(std::byte* base, std::int32_t group) {
    const auto rows = static_cast<std::size_t>(attention_task_rows_max(D, group));
    const auto floats = [&](std::size_t count) {
      float* const array = base == nullptr ? nullptr : reinterpret_cast<float*>(base + bytes);
      bytes += (count * sizeof(float) + 63) / 64 * 64;
      return array;
    };
    lines = floats(kBlock * D);
    q = floats(kRowsAtOnce * D);
    weights = floats(std::size_t{kRowsAtOnce} * kSplitTokens);
    split_o = floats(kRowsAtOnce * D);
    o = floats(rows * D);
    m = floats(rows);
    l = floats(rows);
  }
};

// acc[r][p] += sum over lines of factors[r][line] * panel p's line, one line after another. K of 16 tokens is a panel of D lines,
// V of 16 dims one of 32.
template <class Lanes, int R, int P>
struct Panels {
  const float* factors;
  int factors_stride;
  const float* first;
  int lines;

  void add_to(Lanes (&acc)[R][P]) const {
    for (int line = 0; line < lines; ++line) {
      for (int p = 0; p < P; ++p) {
        const Lanes x = Lanes::load(first + (p * lines + line) * kLanes);
        for (int r = 0; r < R; ++r) acc[r][p] = Lanes::multiply_add(acc[r][p], factors[r * factors_stride + line], x);
      }
    }
  }
};

template <class Lanes, int D>
class PlainRows {
 public:
  PlainRows(const AttentionTask& task, std::byte* memory)
      : task_(task), scratch_(memory, task.group), rows_(task.rows * task.group) {}

  void run() {
    for (int first = 0; first < rows_; first += kRowsAtOnce) {
      const int rows = rows_ - first < kRowsAtOnce ? rows_ - first : kRowsAtOnce;
      load_q(first, rows);
      for (int split = task_.split_begin; split < task_.split_end; ++split) run_split(split, first, rows);
    }
    if (task_.partials != nullptr) return;
    for (int i = 0; i < rows_; ++i) write_row<Lanes, D>(scratch_.o + i * D, scratch_.l[i], out_of(task_, i));
  }

  static void merge(const AttentionTask& task) {
    const int rows = task.rows * task.group;
    for (int i = 0; i < rows; ++i) {
      float o[D] = {};
      float m = 0;
      float l = 0;
      const int first = task.first_split(i / task.group);
      for (int split = first; split <= task.last_split(i / task.group); ++split) {
        const float* const record = record_of(task, split, i);
        merge_split<Lanes, D>(split == first, record, record[D], record[D + 1], {o, m, l});
      }
      write_row<Lanes, D>(o, l, out_of(task, i));
    }
  }

 private:
  static float* out_of(const AttentionTask& task, int i) {
    return task.out + i / task.group * task.out_stride + i % task.group * D;
  }
  static float* record_of(const AttentionTask& task, int split, int i) {
    return task.partials + (static_cast<std::ptrdiff_t>(split - task.partials_begin) * task.rows * task.group + i) * (D + 16);
  }
  static int within(int x) { return x < 0 ? 0 : x > kSplitTokens ? kSplitTokens : x; }

  // Keys of a split that a row sees: [key_begin, key_end), empty if they are not in this order.
  int key_begin(int split, int i) const { return within(task_.first_key(i / task_.group) - split * kSplitTokens); }
  int key_end(int split, int i) const { return within(task_.position + i / task_.group + 1 - split * kSplitTokens); }

  void load_q(int first, int rows) {
    for (int r = 0; r < rows; ++r) {
      const int i = first + r;
      const float* const q = task_.q + i / task_.group * task_.q_stride + i % task_.group * D;
      for (int d = 0; d < D; d += kLanes)
        Lanes::store(scratch_.q + r * D + d, Lanes::multiply(Lanes::load(q + d), Lanes::splat(task_.scale)));
    }
  }

  // f(rows as a constant, first row), four at a time.
  template <class F>
  static void by_fours(int rows, F f) {
    int r = 0;
    for (; r + 4 <= rows; r += 4) f.template operator()<4>(r);
    if (rows - r == 3) f.template operator()<3>(r);
    if (rows - r == 2) f.template operator()<2>(r);
    if (rows - r == 1) f.template operator()<1>(r);
  }

  void run_split(int split, int first, int rows) {
    const int block_begin = key_begin(split, first) / kBlock;
    const int block_end = (key_end(split, first + rows - 1) + kBlock - 1) / kBlock;
    if (block_begin >= block_end) return;
    for (int b = block_begin; b < block_end; ++b) {
      load_lines(halves_of(split, b));
      by_fours(rows, [&]<int R>(int r) { score<R>(r, b); });
    }
    for (int r = 0; r < rows; ++r) {
      for (int d = 0; d < D; ++d) scratch_.split_o[r * D + d] = 0;
    }
    float m[kRowsAtOnce];
    float l[kRowsAtOnce];
    for (int r = 0; r < rows; ++r) m[r] = weigh_keys(split, first, r, block_begin, block_end, l[r]);
    for (int b = block_begin; b < block_end; ++b) {
      load_lines(halves_of(split, b) + kBlock * D);
      by_fours(rows, [&]<int R>(int r) { add_values<R>(r, b); });
    }
    for (int r = 0; r < rows; ++r) {
      if (key_begin(split, first + r) < key_end(split, first + r))
        take_in(split, first + r, scratch_.split_o + r * D, m[r], l[r]);
    }
  }

  const std::uint16_t* halves_of(int split, int b) const {
    return reinterpret_cast<const std::uint16_t*>(task_.blocks[split * kSplitBlocks + b] + task_.k_offset);
  }
  void load_lines(const std::uint16_t* halves) {
    for (int i = 0; i < kBlock * D; i += kLanes) Lanes::store(scratch_.lines + i, Lanes::from_halves(halves + i));
  }

  // Products of R rows' q with the 32 keys of block b; few rows take both panels at once, for more sums under way.
  template <int R>
  void score(int r, int b) {
    constexpr int P = R <= 2 ? 2 : 1;
    for (int panel = 0; panel < 2; panel += P) {
      Lanes acc[R][P];
      for (auto& row : acc) {
        for (Lanes& x : row) x = Lanes::splat(0);
      }
      Panels<Lanes, R, P>{scratch_.q + r * D, D, scratch_.lines + panel * D * kLanes, D}.add_to(acc);
      for (int i = 0; i < R; ++i) {
        for (int p = 0; p < P; ++p)
          Lanes::store(scratch_.weights + (r + i) * kSplitTokens + b * kBlock + (panel + p) * kLanes, acc[i][p]);
      }
    }
  }

  template <int R>
  void add_values(int r, int b) {
    constexpr int P = R <= 2 ? 2 : 1;
    for (int panel = 0; panel < D / kLanes; panel += P) {
      float* const o = scratch_.split_o + r * D + panel * kLanes;
      Lanes acc[R][P];
      for (int i = 0; i < R; ++i) {
        for (int p = 0; p < P; ++p) acc[i][p] = Lanes::load(o + i * D + p * kLanes);
      }
      Panels<Lanes, R, P>{scratch_.weights + r * kSplitTokens + b * kBlock, kSplitTokens,
                          scratch_.lines + panel * kBlock * kLanes, kBlock}
          .add_to(acc);
      for (int i = 0; i < R; ++i) {
        for (int p = 0; p < P; ++p) Lanes::store(o + i * D + p * kLanes, acc[i][p]);
      }
    }
  }

  // A row's scores of blocks [block_begin, block_end) to weights; returns their maximum. Unseen keys get the weight +0, which
  // changes no bit of a sum.
  float weigh_keys(int split, int first, int r, int block_begin, int block_end, float& sum) {
    float* const w = scratch_.weights + r * kSplitTokens;
    if (task_.cap != 0) cap(w, block_begin * kBlock, block_end * kBlock);
    for (int t = block_begin * kBlock; t < key_begin(split, first + r); ++t) w[t] = kNegativeInfinity;
    for (int t = key_end(split, first + r); t < block_end * kBlock; ++t) w[t] = kNegativeInfinity;
    Lanes largest = Lanes::splat(kNegativeInfinity);
    for (int t = block_begin * kBlock; t < block_end * kBlock; t += kLanes) largest = Lanes::maximum(largest, Lanes::load(w + t));
    float lanes[kLanes];
    Lanes::store(lanes, largest);
    float maximum = lanes[0];
    for (const float x : lanes) maximum = x > maximum ? x : maximum;
    Lanes sums = Lanes::splat(0);
    for (int b = block_begin; b < block_end; ++b) {
      float p[kBlock];
      for (int t = 0; t < kBlock; t += kLanes) {
        const Lanes x = Lanes::exp2_not_positive(Lanes::subtract(Lanes::load(w + b * kBlock + t), Lanes::splat(maximum)));
        sums = Lanes::add(sums, x);
        Lanes::store(p + t, x);
      }
      for (int line = 0; line < kBlock; ++line) w[b * kBlock + line] = p[line % 2 * kLanes + line / 2];
    }
    Lanes::store(lanes, sums);
    sum = 0;
    for (const float x : lanes) sum += x;
    return maximum;
  }

  // cap * tanh(s) with tanh(x) = (1 - e) / (1 + e), e = e^(-2|x|), and x's sign.
  void cap(float* s, int begin, int end) const {
    const Lanes one = Lanes::splat(1);
    for (int t = begin; t < end; t += kLanes) {
      const Lanes x = Lanes::load(s + t);
      const Lanes e = Lanes::exp2_not_positive(Lanes::multiply(Lanes::magnitude(x), Lanes::splat(-2.8853900817779268F)));
      const Lanes tanh = Lanes::divide(Lanes::subtract(one, e), Lanes::add(one, e));
      Lanes::store(s + t, Lanes::multiply(Lanes::with_sign_of(x, tanh), Lanes::splat(task_.cap)));
    }
  }

  void take_in(int split, int i, const float* o, float m, float l) {
    if (task_.partials == nullptr) {
      merge_split<Lanes, D>(split == task_.first_split(i / task_.group), o, m, l,
                            {scratch_.o + i * D, scratch_.m[i], scratch_.l[i]});
      return;
    }
    float* const record = record_of(task_, split, i);
    for (int d = 0; d < D; ++d) record[d] = o[d];
    record[D] = m;
    record[D + 1] = l;
  }

  const AttentionTask& task_;
  PlainScratch<D> scratch_;
  int rows_;
};

template <class Lanes, int D>
AttentionKernel plain_kernel_of() {
  return {.run = [](const AttentionTask& task, std::byte* scratch) { PlainRows<Lanes, D>(task, scratch).run(); },
          .merge = PlainRows<Lanes, D>::merge,
          .scratch_bytes = [](std::int32_t group) { return PlainScratch<D>(nullptr, group).bytes; }};
}

template <class Lanes>
AttentionKernel plain_kernel(std::int32_t head_dim) {
  switch (head_dim) {
    case 32:
      return plain_kernel_of<Lanes, 32>();
    case 64:
      return plain_kernel_of<Lanes, 64>();
    case 96:
      return plain_kernel_of<Lanes, 96>();
    case 128:
      return plain_kernel_of<Lanes, 128>();
    case 256:
      return plain_kernel_of<Lanes, 256>();
    default:
      return {};
  }
}

}  // namespace
}  // namespace linnet::cpu
