// The engine's executor on MLX: the reference path on CPUs, and what Metal and CUDA run.
#pragma once

#include <mlx/mlx.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/mlx/ops.h"
#include "engine/executor.h"
#include "exec/sampler.h"
#include "linnet/options.h"
#include "linnet/status.h"
#include "model/architectures.h"
#include "weights/model_file.h"

namespace linnet::mlx_backend {

struct MlxExecutorOptions {
  DeviceKind device = DeviceKind::kAuto;  // kAuto: a GPU if this MLX has one
  std::int32_t context = 0;               // tokens of a sequence; 0: the model's, within memory
  std::int32_t rows_max = 32;
  std::int32_t tokens_max = 2048;         // inputs of a step, mlx-lm's chunk of a prompt
  std::uint64_t memory_budget_bytes = 0;  // weights, KV and logits; 0: 75 % of the device's memory
};

// Whether this process's MLX has a GPU.
bool gpu_available();

// What one token costs, for limits that speeds are stated against.
struct TokenCost {
  double weight_bytes = 0;  // read by a lone decode row
  double kv_bytes = 0;      // read for each token of context
  double flops = 0;         // of the layers' matrices
};

// launch() builds each row's graph and starts it; collect() waits, then samples on the calling thread. Rows are forwarded one
// after another, each over its sequence's own caches, so what a row is given does not depend on company; block ids are
// bookkeeping of the planner's, and name no memory here.
// Owned and used by the engine's thread: MLX's streams belong to threads. (It may be created on another: its arrays are evaluated
// by then.)
// Invariants: 1. A live sequence's caches hold what its row's position says or more; more is taken back when its row runs.
// 2. After a step that failed none of its rows' sequences has caches.
class MlxExecutor final : public Executor {
 public:
  // Copies all weights of `file`, which may go afterwards. Errors: kUnsupported (device, libmlx's version); of the file's
  // tensors; kTooLarge naming the budget and its flag; kInternal with MLX's own words.
  static Result<std::unique_ptr<MlxExecutor>> create(const ModelFile& file, const MlxExecutorOptions& options);

  const ExecutorInfo& info() const override { return info_; }
  Ticket launch(const StepPlan& plan) override;
  void sample(Ticket ticket, std::span<const RowSampling> rows) override;
  Result<const StepResult*> collect(Ticket ticket) override;
  void release(SequenceId sequence) override { sequences_.erase(sequence); }

  // The last step's logits, [samples, vocabulary] in the order of the plan's rows.
  std::span<const float> logits() const { return logits_; }
  const TokenCost& token_cost() const { return cost_; }
  bool on_gpu() const { return device_ == mx::Device::gpu; }

 private:
  explicit MlxExecutor(mx::Device device) : device_(device) {}
  Status load(const ModelFile& file, const MlxExecutorOptions& options);
  Status reserve(const ModelConfig& config, const MlxExecutorOptions& options, std::uint64_t bytes_left);
  void describe(const ModelConfig& config);

  Result<LayerCaches*> caches_at(const RowPlan& row);
  // Builds and starts the graphs of all rows.
  Status start();
  // Waits for them and fetches the logits.
  Status finish();
  void clone(const SequenceClone& clone);
  void sample_rows();
  void sample_row(const RowPlan& plan, const RowSampling& how, RowResult& row);
  void forget_rows();

  mx::Device device_;
  std::unique_ptr<Model<Ops>> model_;
  std::optional<Ops> ops_;
  std::optional<Sampler> sampler_;
  std::unordered_map<SequenceId, LayerCaches> sequences_;
  std::int32_t layers_ = 0;
  ExecutorInfo info_;
  TokenCost cost_;

  std::uint64_t tickets_ = 0;
  const StepPlan* plan_ = nullptr;
  std::span<const RowSampling> sampling_;
  Status started_;                          // what launch() could not return
  std::vector<mx::array> pending_;          // of the step: sampled rows' logits in float32, then KV
  std::size_t pending_logits_ = 0;          // how many of them are logits
  std::int32_t tokens_since_clearing_ = 0;  // of MLX's pool of free buffers
  std::vector<float> logits_;
  StepResult result_;
};

}  // namespace linnet::mlx_backend
