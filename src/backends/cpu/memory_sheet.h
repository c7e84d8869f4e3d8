// What a model takes on this backend, computed from its headers: load reserves exactly this.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/kv_blocks.h"
#include "backends/cpu/ops.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "linnet/status.h"
#include "weights/model_file.h"

namespace linnet::cpu {

struct CpuExecutorOptions {
  Pool* pool = nullptr;      // shared with other executors, and outlives this one; null: it makes one of its own, by the next two
  std::int32_t threads = 0;  // 0: as many as affinity and cgroup allow
  bool pin_threads = true;
  const KernelSet* kernels = nullptr;  // null: what the environment or the machine says
  std::int32_t context = 0;            // tokens of a sequence; 0: the model's, within memory
  std::int32_t rows_max = 32;
  std::int32_t tokens_max = 512;          // inputs of a step
  std::uint64_t memory_budget_bytes = 0;  // weights, KV and scratch; 0: the process's default
};

// What one token costs, for limits that speeds are stated against.
struct TokenCost {
  double weight_bytes = 0;  // read by a lone decode row
  double kv_bytes = 0;      // read for each token of context
  double flops = 0;         // of the layers' matrices
};

// Bytes, but where another unit is said. KV gets what the budget leaves after the rest, up to rows_max contexts.
struct MemorySheet {
  const KernelSet* kernels = nullptr;
  std::int32_t threads = 0;
  std::uint64_t budget = 0;
  std::uint64_t weights = 0;  // in panels
  std::uint64_t samplers = 0;
  std::uint64_t scratch = 0;  // of a step of the largest size
  KvLayout kv_layout;
  std::int32_t kv_blocks = 0;  // of kBlockTokens tokens each
  StepLimits limits;           // context_max: tokens of the longest sequence
  TokenCost token_cost;

  std::uint64_t kv_of(std::int32_t context) const {  // one sequence's
    return Region::size_of(static_cast<std::size_t>((context + kBlockTokens - 1) / kBlockTokens) * kv_layout.block_bytes());
  }
  std::uint64_t kv() const { return Region::size_of(static_cast<std::size_t>(kv_blocks) * kv_layout.block_bytes()); }
  std::uint64_t total() const { return weights + samplers + scratch + kv(); }
  // Sequences of `context` tokens that the KV blocks hold at once.
  std::int32_t rows_that_fit(std::int32_t context) const { return kv_blocks / ((context + kBlockTokens - 1) / kBlockTokens); }
};

// Reads no tensor's numbers. Errors: kInvalidArgument (a context beyond the model's), kTooLarge (naming the budget and its flag),
// kUnsupported (kernels, head size, tensor formats), those of the file's tensors.
Result<MemorySheet> plan_memory(const ModelFile& file, const CpuExecutorOptions& options);

}  // namespace linnet::cpu
