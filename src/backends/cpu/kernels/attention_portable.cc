// Attention in plain f32 for any machine: what the other kernels are compared with. Multiplications and additions in one written
// order; vectors of the compiler, if any, run along 16 tokens or 16 dims, which are independent of each other.
#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/attention_kernel.h"
#include "backends/cpu/kv_blocks.h"

namespace linnet::cpu {
namespace {

constexpr int kSplitBlocks = kSplitTokens / kBlockTokens;
constexpr int kLanes = 16;

// Four floats, which the compilers know on every architecture; 16 lanes are four of them.
using Quad = float __attribute__((vector_size(16)));
constexpr int kQuads = kLanes / 4;

Quad load_quad(const float* address) {
  Quad quad;
  __builtin_memcpy(&quad, address, sizeof quad);
  return quad;
}
void store_quad(float* address, Quad quad) { __builtin_memcpy(address, &quad, sizeof quad); }
// acc += factor * lanes
void add_multiple(Quad (&acc)[kQuads], float factor, const float* lanes) {
  for (int i = 0; i < kQuads; ++i) acc[i] += factor * load_quad(lanes + 4 * i);
}
constexpr float kNegativeInfinity = -__builtin_inff();

// As half_to_float, for numbers that are finite, without branches.
float finite_half_to_float(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13) + 0x38000000U;
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(0x38800000U | magnitude << 13) - std::bit_cast<float>(0x38800000U));
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  return std::bit_cast<float>(sign | (magnitude >= 0x400U ? normal : small));
}

// 2^x for x <= 0; below -127 it is zero. NaN stays NaN.
float exp2_not_positive(float x) {
  const float bounded = x > -127.0F ? x : -127.0F;
  auto whole = static_cast<std::int32_t>(bounded);
  if (static_cast<float>(whole) > bounded) --whole;
  const float r = bounded - static_cast<float>(whole);
  float p = 0.0018775766948238015F;
  p = p * r + 0.00898933969438076F;
  p = p * r + 0.05582631751894951F;
  p = p * r + 0.24015361070632935F;
  p = p * r + 0.6931530833244324F;
  p = p * r + 0.9999999403953552F;
  const float scaled = p * std::bit_cast<float>(static_cast<std::uint32_t>(whole + 127) << 23);
  if (x != x) return x;
  return x > -127.0F ? scaled : 0.0F;
}

struct Scratch {
  float* k;        // [block][token / 16][dim][16] of a split
  float* v;        // [block][dim / 16][token % 16][token / 16][16]
  float* q;        // [D] one row, scaled
  float* weights;  // [512] scores, then weights, of one row
  float* split_o;  // [D]
  float* o;        // [rows][D]
  float* m;        // [rows]
  float* l;        // [rows]
  std::size_t bytes;

  Scratch(std::byte* base, std::int32_t head_dim, std::int32_t group) {
    const auto rows = static_cast<std::size_t>(attention_task_rows_max(head_dim, group));
    const auto dim = static_cast<std::size_t>(head_dim);
    std::size_t at = 0;
    const auto floats = [&](std::size_t count) {
      float* const array = base == nullptr ? nullptr : reinterpret_cast<float*>(base + at);
      at += (count * sizeof(float) + 63) / 64 * 64;
      return array;
    };
    k = floats(kSplitTokens * dim);
    v = floats(kSplitTokens * dim);
    q = floats(dim);
    weights = floats(kSplitTokens);
    split_o = floats(dim);
    o = floats(rows * dim);
    m = floats(rows);
    l = floats(rows);
    bytes = at;
  }
};

// Into a row's running (maximum, sum, weighted V); splits ascending.
void merge_split(bool first, const float* o, float m, float l, float* running_o, float& running_m, float& running_l, int dims) {
  if (first) {
    for (int d = 0; d < dims; ++d) running_o[d] = o[d];
    running_m = m;
    running_l = l;
    return;
  }
  const float top = m > running_m ? m : running_m;
  const float old_factor = exp2_not_positive(running_m - top);
  const float new_factor = exp2_not_positive(m - top);
  for (int d = 0; d < dims; ++d) running_o[d] = running_o[d] * old_factor + o[d] * new_factor;
  running_m = top;
  running_l = running_l * old_factor + l * new_factor;
}

template <int D>
class Rows {
 public:
  Rows(const AttentionTask& task, std::byte* memory) : task_(task), scratch_(memory, D, task.group) {}

  void run() {
    const int rows = task_.rows * task_.group;
    for (int split = task_.split_begin; split < task_.split_end; ++split) {
      load_split(split);
      for (int i = 0; i < rows; ++i) {
        const int keys = task_.position + i / task_.group + 1 - split * kSplitTokens;
        if (keys > 0) run_row(split, i, keys < kSplitTokens ? keys : kSplitTokens);
      }
    }
    if (task_.partials != nullptr) return;
    for (int i = 0; i < rows; ++i) {
      float* const out = task_.out + i / task_.group * task_.out_stride + i % task_.group * D;
      for (int d = 0; d < D; ++d) out[d] = scratch_.o[i * D + d] * (1.0F / scratch_.l[i]);
    }
  }

 private:
  static constexpr int kHalf = kBlockTokens * D;

  void load_split(int split) {
    const int total = task_.position + task_.rows - split * kSplitTokens;
    const int blocks = total >= kSplitTokens ? kSplitBlocks : (total + kBlockTokens - 1) / kBlockTokens;
    for (int b = 0; b < blocks; ++b) {
      const auto* const halves = reinterpret_cast<const std::uint16_t*>(task_.blocks[split * kSplitBlocks + b] + task_.k_offset);
      float* const k = scratch_.k + b * kHalf;
      float* const v = scratch_.v + b * kHalf;
      for (int i = 0; i < kHalf; ++i) k[i] = finite_half_to_float(halves[i]);
      for (int i = 0; i < kHalf; ++i) v[i] = finite_half_to_float(halves[kHalf + i]);
    }
  }

  void run_row(int split, int i, int keys) {
    const float* const q = task_.q + i / task_.group * task_.q_stride + i % task_.group * D;
    for (int d = 0; d < D; ++d) scratch_.q[d] = q[d] * task_.scale;
    float* const weights = scratch_.weights;
    const int blocks = (keys + kBlockTokens - 1) / kBlockTokens;
    for (int half = 0; half < 2 * blocks; ++half) score(scratch_.k + half * kLanes * D, weights + half * kLanes);
    float maximum = kNegativeInfinity;
    for (int t = 0; t < keys; ++t) maximum = weights[t] > maximum ? weights[t] : maximum;
    float sum = 0;
    for (int t = 0; t < keys; ++t) {
      weights[t] = exp2_not_positive(weights[t] - maximum);
      sum += weights[t];
    }
    for (int t = keys; t < blocks * kBlockTokens; ++t) weights[t] = 0;
    for (int d = 0; d < D; d += kLanes) weigh(d, blocks, weights, scratch_.split_o + d);
    if (task_.partials == nullptr) {
      merge_split(split == 0, scratch_.split_o, maximum, sum, scratch_.o + i * D, scratch_.m[i], scratch_.l[i], D);
      return;
    }
    float* const record = task_.partials + (static_cast<std::ptrdiff_t>(split) * task_.rows * task_.group + i) * (D + 16);
    for (int d = 0; d < D; ++d) record[d] = scratch_.split_o[d];
    record[D] = maximum;
    record[D + 1] = sum;
  }

  // 16 keys' products with the row's q.
  void score(const float* k, float* scores) const {
    Quad acc[kQuads] = {};
    for (int d = 0; d < D; ++d) add_multiple(acc, scratch_.q[d], k + d * kLanes);
    for (int i = 0; i < kQuads; ++i) store_quad(scores + 4 * i, acc[i]);
  }

  // 16 dims of weighted V, tokens in the order of memory.
  void weigh(int dim, int blocks, const float* weights, float* o) const {
    Quad acc[kQuads] = {};
    for (int b = 0; b < blocks; ++b) {
      const float* const v = scratch_.v + b * kHalf + dim * kBlockTokens;
      for (int line = 0; line < kBlockTokens; ++line) {
        add_multiple(acc, weights[b * kBlockTokens + line % 2 * kLanes + line / 2], v + line * kLanes);
      }
    }
    for (int i = 0; i < kQuads; ++i) store_quad(o + 4 * i, acc[i]);
  }

  const AttentionTask& task_;
  Scratch scratch_;
};

template <int D>
void run_task(const AttentionTask& task, std::byte* scratch) {
  Rows<D>(task, scratch).run();
}

template <int D>
void merge_partials(const AttentionTask& task) {
  const int rows = task.rows * task.group;
  for (int i = 0; i < rows; ++i) {
    float o[D];
    float m = 0;
    float l = 0;
    const int splits = (task.position + i / task.group) / kSplitTokens + 1;
    for (int split = 0; split < splits; ++split) {
      const float* const record = task.partials + (static_cast<std::ptrdiff_t>(split) * rows + i) * (D + 16);
      merge_split(split == 0, record, record[D], record[D + 1], o, m, l, D);
    }
    float* const out = task.out + i / task.group * task.out_stride + i % task.group * D;
    for (int d = 0; d < D; ++d) out[d] = o[d] * (1.0F / l);
  }
}

template <int D>
AttentionKernel kernel() {
  return {.run = run_task<D>, .merge = merge_partials<D>, .scratch_bytes = [](std::int32_t group) {
            return Scratch(nullptr, D, group).bytes;
          }};
}

}  // namespace

AttentionKernel attention_kernel_portable(std::int32_t head_dim) {
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
