// Causal grouped-query attention over KV blocks for all rows of a step.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/kernels/attention_cut.h"
#include "backends/cpu/kernels/attention_kernel.h"
#include "backends/cpu/kernels/kv_write.h"
#include "backends/cpu/kv_blocks.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "base/ids.h"
#include "linnet/status.h"
#include "model/attention_call.h"

namespace linnet::cpu {

// A model's attention and the most that a step may ask of it.
struct AttentionOptions {
  KvLayout layout;
  std::int32_t heads = 0;        // a multiple of layout.kv_heads
  std::int32_t rows_max = 0;     // rows of a step
  std::int32_t tokens_max = 0;   // tokens of a step, all rows
  std::int32_t context_max = 0;  // tokens of a sequence
};

// What an instruction set brings: attention_kernel_*(head_dim) and kv_write_*.
struct AttentionKernels {
  AttentionKernel attention;
  KvWrite kv_write = nullptr;
};

// One row of a step: `count` tokens at positions position .., their inputs from `token_begin` in the step's [T, ...] matrices.
struct AttentionRow {
  std::int32_t position = 0;
  std::int32_t count = 0;
  std::int32_t token_begin = 0;
  std::span<const BlockId> blocks;  // from position 0; cover position + count tokens
};

// A matrix of f32 with one line for each token of the step; stride in floats.
struct TokenMatrix {
  float* data = nullptr;
  std::int64_t stride = 0;
};
struct ConstTokenMatrix {
  const float* data = nullptr;
  std::int64_t stride = 0;
};

// Runs a step's attention on all threads. Belongs to one executor. Calls: plan() once a step, then for each layer write() and
// after it run(). Invariants: 1. The bits of a row depend on its own q, keys and values only: not on other rows, chunks, threads
// or the cut.
// 2. Nothing allocates after create().
class Attention {
 public:
  Attention() = default;  // for no steps at all
  // For steps that run on `pool`; reserves all memory and touches it. Errors: kUnsupported (head size), kTooLarge (scratch).
  static Result<Attention> create(const AttentionOptions& options, const AttentionKernels& kernels, Pool& pool);

  // What create() would reserve. Error: kUnsupported (head size).
  static Result<std::size_t> memory_bytes(const AttentionOptions& options, const AttentionKernels& kernels, int threads);

  // `blocks`: addresses by id, as KvPool::blocks().
  void plan(std::span<const AttentionRow> rows, std::span<std::byte* const> blocks);

  // Writes K [T, kv_heads * head_dim] (after rope) and V of the step's tokens into their blocks. before(begin, end) is called for
  // tokens [begin, end) of the step just before they are written, once for each, on the thread that writes them.
  template <class Before>
  void write(Pool& pool, std::int32_t layer, ConstTokenMatrix k, ConstTokenMatrix v, Before&& before) {
    pool.deal(write_pieces(), [&](int, WorkQueue& pieces) {
      for (std::int64_t piece = 0, end = 0; pieces.take(piece, end);) {
        const Share share = share_of(static_cast<std::int64_t>(write_items_.size()), static_cast<int>(piece), write_pieces());
        for (std::int64_t i = share.begin; i < share.end; ++i) {
          const WriteItem& item = write_items_[static_cast<std::size_t>(i)];
          before(item.token_begin, item.token_begin + item.count);
          write_item(item, layer, k, v);
        }
      }
    });
  }

  // q [T, heads * head_dim] (after rope) -> out, the same shape. The layers of a model have at most kWindowsMax different
  // windows.
  static constexpr std::size_t kWindowsMax = 2;
  void run(Pool& pool, const AttentionCall& call, ConstTokenMatrix q, TokenMatrix out);

  // A key or value of this row, of any layer written since plan(), was not finite: its results mean nothing.
  bool row_failed(std::int32_t row) const;

  std::size_t reserved_bytes() const { return region_.size(); }

 private:
  struct WriteItem {
    std::int32_t row = 0;
    std::int32_t first = 0;        // token of the row
    std::int32_t token_begin = 0;  // of the step
    std::int32_t count = 0;
  };

  struct ScratchBytes {
    std::size_t partials = 0;
    std::size_t of_thread = 0;
  };

  Attention(const AttentionOptions& options, const AttentionKernels& kernels, int threads);
  ScratchBytes scratch_bytes() const;
  Status reserve(Pool& pool);
  void plan_row(const AttentionRow& row, std::span<std::byte* const> blocks);
  void plan_writes();
  int write_pieces() const;
  AttentionCut& cut_of(std::int32_t window);
  AttentionTask task_of(const AttentionUnit& unit, const AttentionCall& call, ConstTokenMatrix q, TokenMatrix out) const;
  void run_item(AttentionCut& cut, const AttentionItem& item, const AttentionTask& whole, int thread);
  void write_item(const WriteItem& item, std::int32_t layer, ConstTokenMatrix k, ConstTokenMatrix v);

  AttentionOptions options_;
  AttentionKernels kernels_;
  AttentionShape shape_;

  std::vector<AttentionPiece> rows_;
  std::vector<std::byte*> block_table_;  // of all rows, one after another
  std::vector<AttentionCut> cuts_;       // the first cuts_made_ of them are this step's
  std::size_t cuts_made_ = 0;
  std::vector<WriteItem> write_items_;
  std::int64_t tokens_ = 0;
  std::unique_ptr<std::atomic<bool>[]> failed_;  // [rows]

  Region region_;
  std::vector<std::byte*> scratch_;  // [threads]
  std::span<float> partials_;
};

}  // namespace linnet::cpu
