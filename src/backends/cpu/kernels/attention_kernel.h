// Attention's kernels: the lines that an instruction set offers for one head size. kernels/attention.h cuts a step into these.
//
// All of one set give the same bits for a row however the work is cut: keys are taken in splits of 512 from position 0, each
// split has its own maximum, sum and weighted V, and splits are merged in ascending order.
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
  std::int32_t position = 0;                 // of the first row; row r sees keys 0 .. position + r
  std::int32_t rows = 0;                     // rows * group <= attention_task_rows_max()
  std::int32_t group = 0;                    // heads / KV heads
  float scale = 0;                           // log2(e) * the model's factor of q . k
  std::int32_t split_begin = 0;              // splits [begin, end) of those that the last row sees
  std::int32_t split_end = 0;
  // Null: the task has all splits; it merges them and writes out. Else records of attention_partial_floats(head_dim), [split][row
  // * group]: it writes those of its own splits, and a call of merge with the same task and all of them present writes out.
  float* partials = nullptr;
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
AttentionKernel attention_kernel_avx512(std::int32_t head_dim);  // F, BW, DQ, VL; wants FTZ and DAZ to equal the next
AttentionKernel attention_kernel_amx(std::int32_t head_dim);     // and AMX-BF16; the process has asked for tiles

}  // namespace linnet::cpu
