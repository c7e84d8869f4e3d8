// The engine's executor on plain CPUs: a forward pass is a direct sequence of kernel calls on raw memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/kv_blocks.h"
#include "backends/cpu/ops.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "base/memory_budget.h"
#include "engine/executor.h"
#include "exec/sampler.h"
#include "linnet/status.h"
#include "model/architectures.h"
#include "weights/model_file.h"

namespace linnet::cpu {

struct CpuExecutorOptions {
  std::int32_t threads = 0;  // 0: as many as affinity and cgroup allow
  bool pin_threads = true;
  const KernelSet* kernels = nullptr;  // null: what the environment or the machine says
  std::int32_t context = 0;            // tokens of a sequence; 0: the model's, within memory
  std::int32_t rows_max = 32;
  std::int32_t tokens_max = 512;          // inputs of a step
  std::uint64_t memory_budget_bytes = 0;  // weights, KV and scratch
};

// What one token costs, for limits that speeds are stated against.
struct TokenCost {
  double weight_bytes = 0;  // read by a lone decode row
  double kv_bytes = 0;      // read for each token of context
  double flops = 0;         // of the layers' matrices
};

// All work happens in collect(), on the thread that calls it, which is kernel thread 0, and on the pool's. Owns weights in
// panels, the KV pool and the step's scratch: reserved at load, so that no step allocates.
class CpuExecutor final : public Executor {
 public:
  // Reads all weights of `file`, which may go afterwards. Errors: of the file's tensors; kTooLarge naming the budget and its
  // flag.
  static Result<std::unique_ptr<CpuExecutor>> create(const ModelFile& file, const CpuExecutorOptions& options);

  const ExecutorInfo& info() const override { return info_; }
  void adopt_thread() override { pool_->adopt_caller(); }
  Ticket launch(const StepPlan& plan) override;
  void sample(Ticket ticket, std::span<const RowSampling> rows) override;
  Result<const StepResult*> collect(Ticket ticket) override;

  // The last step's logits, [samples, vocabulary] in the order of the plan's rows.
  std::span<const float> logits() const { return logits_; }
  const KernelSet& kernels() const { return *kernels_; }
  int threads() const { return pool_->threads(); }
  const TokenCost& token_cost() const { return cost_; }

 private:
  CpuExecutor(const KernelSet& kernels, std::unique_ptr<Pool> pool) : kernels_(&kernels), pool_(std::move(pool)) {}
  Status load_weights(const ModelFile& file, MemoryLeft& memory);
  Status reserve(const ModelConfig& config, const CpuExecutorOptions& options, MemoryLeft& memory);
  void describe(const ModelConfig& config, const StepLimits& limits);
  void sample_rows();
  void sample_row(std::size_t index, Sampler& sampler);

  const KernelSet* kernels_;
  std::unique_ptr<Pool> pool_;
  Region weights_;
  std::unique_ptr<Model<Ops>> model_;
  KvPool kv_;
  std::optional<Ops> ops_;
  std::vector<Sampler> samplers_;  // [threads]
  ExecutorInfo info_;
  TokenCost cost_;

  std::uint64_t tickets_ = 0;
  const StepPlan* plan_ = nullptr;
  std::span<const RowSampling> sampling_;
  std::span<const float> logits_;
  StepResult result_;
  WorkQueue queue_;
};

}  // namespace linnet::cpu
