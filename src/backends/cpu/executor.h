// The engine's executor on plain CPUs: a forward pass is a direct sequence of kernel calls on raw memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/kv_blocks.h"
#include "backends/cpu/memory_sheet.h"
#include "backends/cpu/ops.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "engine/executor.h"
#include "exec/sampler.h"
#include "linnet/status.h"
#include "model/architectures.h"
#include "weights/model_file.h"

namespace linnet::cpu {

// All work happens in collect(), on the thread that calls it, which is kernel thread 0, and on the pool's. Executors that share
// a pool take turns by step; what one does at load is cut into turns too. Owns weights in
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
  // What was reserved, equal to plan_memory() of the same file and options.
  const MemorySheet& memory() const { return sheet_; }
  const TokenCost& token_cost() const { return sheet_.token_cost; }

 private:
  CpuExecutor(const MemorySheet& sheet, const CpuExecutorOptions& options);
  Status load_weights(const ModelFile& file);
  Status reserve(const ModelConfig& config);
  void describe(const ModelConfig& config);
  void sample_rows();
  void sample_row(std::size_t index, Sampler& sampler);

  const MemorySheet sheet_;
  const KernelSet* kernels_;
  const std::unique_ptr<Pool> own_pool_;  // null: pool_ is shared
  Pool* const pool_;
  Region weights_;
  std::unique_ptr<Model<Ops>> model_;
  KvPool kv_;
  std::optional<Ops> ops_;
  std::vector<Sampler> samplers_;  // [threads]
  ExecutorInfo info_;

  std::uint64_t tickets_ = 0;
  const StepPlan* plan_ = nullptr;
  std::span<const RowSampling> sampling_;
  std::span<const float> logits_;
  StepResult result_;
};

}  // namespace linnet::cpu
