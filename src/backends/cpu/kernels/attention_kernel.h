// Attention's kernels: the lines that an instruction set offers for one head size. kernels/attention.h cuts a step into these.
//
// All of one set give the same bits for a row however the work is cut: keys are taken in splits of 512 from position 0, each
// split has its own maximum, sum and weighted V, and the splits that a row sees are merged in ascending order. A sliding window
// moves what a row sees, not the splits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace linnet::cpu {

inline constexpr std::int32_t kSplitTokens = 512;

// Query rows (row = one position, one head) that a task may have: bounds a thread's scratch.
constexpr std::int32_t attention_task_rows_max(std::int32_t head_dim, std::int32_t group) {
  const std::int32_t rows = head_dim > 128 ? 256 : 512;
  return rows > group ? rows : (group + 31) / 32 * 32;
}

// `rows` positions of one sequence, the heads that share one KV head, and some splits of its keys.
struct AttentionTask {
  const float* q = nullptr;   // first row, first head: [rows][group][head_dim], heads contiguous
  std::int64_t q_stride = 0;  // floats from a row to the next
  float* out = nullptr;       // as q
  std::int64_t out_stride = 0;
  const std::byte* const* blocks = nullptr;  // the sequence's blocks from position 0
  std::size_t k_offset = 0;                  // bytes from a block's first to K of this layer and KV head; V follows K
  std::int32_t position = 0;                 // of the first row
  std::int32_t window = 0;                   // row r sees keys position + r - window + 1 .. position + r; 0: all up to that
  std::int32_t rows = 0;                     // rows * group <= attention_task_rows_max()
  std::int32_t group = 0;                    // heads / KV heads
  float scale = 0;                           // of q . k. Scores are powers of two: log2(e) is in it, or in cap
  float cap = 0;                             // 0, or scores s become cap * tanh(s)
  std::int32_t split_begin = 0;              // splits [begin, end) of those that the rows see
  std::int32_t split_end = 0;
  // Null: the task has all splits; it merges them and writes out. Else records of attention_partial_floats(head_dim), [split -
  // partials_begin][row * group]: it writes those of its own splits, and a call of merge with the same task and all of them
  // present writes out.
  float* partials = nullptr;
  std::int32_t partials_begin = 0;

  // The first key that row r sees, and the first split it has a key in.
  constexpr std::int32_t first_key(std::int32_t row) const {
    const std::int32_t outside = position + row + 1 - window;
    return window == 0 || outside < 0 ? 0 : outside;
  }
  constexpr std::int32_t first_split(std::int32_t row) const { return first_key(row) / kSplitTokens; }
  constexpr std::int32_t last_split(std::int32_t row) const { return (position + row) / kSplitTokens; }
};

// A partial: [head_dim] weighted V, then the maximum, then the sum.
constexpr std::size_t attention_partial_floats(std::int32_t head_dim) { return static_cast<std::size_t>(head_dim) + 16; }

struct AttentionKernel {
  using Run = void (*)(const AttentionTask& task, std::byte* scratch);
  using Merge = void (*)(const AttentionTask& task);

  Run run = nullptr;
  Merge merge = nullptr;
  std::size_t (*scratch_bytes)(std::int32_t group) = nullptr;  // a thread's, aligned to 64
};

// Per instruction set, for a head size; run is null if it is not offered (kAttentionHeadDims says which are).
inline constexpr std::int32_t kAttentionHeadDims[] = {32, 64, 96, 128, 256};
AttentionKernel attention_kernel_portable(std::int32_t head_dim);
AttentionKernel attention_kernel_avx2(std::int32_t head_dim);    // and FMA, F16C
AttentionKernel attention_kernel_avx512(std::int32_t head_dim);  // F, BW, DQ, VL; wants FTZ and DAZ to equal the next
AttentionKernel attention_kernel_amx(std::int32_t head_dim);     // and AMX-BF16; the process has asked for tiles

}  // namespace linnet::cpu
