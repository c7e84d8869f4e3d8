#include "backends/mlx/executor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backends/mlx/guarded.h"
#include "backends/mlx/version.h"
#include "backends/mlx/weight_loader.h"
#include "base/check.h"
#include "base/memory_budget.h"
#include "linnet/version.h"

namespace linnet::mlx_backend {
namespace {

constexpr std::int32_t kBlockTokens = 256;     // what caches grow by
constexpr std::int32_t kClearingTokens = 256;  // inputs after which MLX's pool of free buffers is emptied, as mlx-lm does

// Operations and bytes a second, roughly: the planner's first guess.
struct Rates {
  double flops;
  double bytes;
};
Rates rates_of(mx::Device device) { return device == mx::Device::gpu ? Rates{2e13, 5e11} : Rates{1e9, 1e9}; }

Result<mx::Device> choose_device(DeviceKind kind) {
  const bool gpu = gpu_available();
  if (kind == DeviceKind::kGpu && !gpu) {
    return Error{
        ErrorCode::kUnsupported,
        "--device gpu: the MLX that is installed has no GPU here; install mlx-cuda-13 on NVIDIA machines, or use --device "
        "cpu",
        "--device"};
  }
  return gpu && kind != DeviceKind::kCpu ? mx::Device(mx::Device::gpu) : mx::Device(mx::Device::cpu);
}

std::uint64_t default_budget(mx::Device device) {
  return device == mx::Device::gpu ? mx::get_memory_limit() / 4 * 3 : default_memory_budget();
}

}  // namespace

bool gpu_available() { return mx::is_available(mx::Device(mx::Device::gpu)); }

Result<std::unique_ptr<MlxExecutor>> MlxExecutor::create(const ModelFile& file, const MlxExecutorOptions& options) {
  LINNET_RETURN_IF_ERROR(check_version());
  if (options.context > file.config().context_max) {
    return Error{ErrorCode::kInvalidArgument,
                 "--context " + std::to_string(options.context) + " is more than the model was made for (" +
                     std::to_string(file.config().context_max) + ")",
                 "--context"};
  }
  return guarded("to load the model", [&]() -> Result<std::unique_ptr<MlxExecutor>> {
    LINNET_ASSIGN(const mx::Device device, choose_device(options.device));
    std::unique_ptr<MlxExecutor> executor(new MlxExecutor(device));
    LINNET_RETURN_IF_ERROR(executor->load(file, options));
    return executor;
  });
}

Status MlxExecutor::load(const ModelFile& file, const MlxExecutorOptions& options) {
  const ModelConfig& config = file.config();
  MemoryLeft memory(options.memory_budget_bytes != 0 ? options.memory_budget_bytes : default_budget(device_));
  WeightLoader weights(file, memory);
  LINNET_ASSIGN(model_, bind_model<Ops>(config, weights));
  ops_.emplace(config, device_);
  layers_ = config.layers;
  cost_.weight_bytes = weights.bytes_per_token();
  cost_.flops = 2 * weights.layer_weights();
  cost_.kv_bytes =
      2.0 * config.layers * config.kv_heads * config.head_dim * static_cast<double>(mx::size_of(weights.activation_type()));
  LINNET_RETURN_IF_ERROR(memory.take(Sampler::memory_bytes(config.vocabulary), "samplers"));
  sampler_.emplace(config.vocabulary);
  // Logits exist in the model's type, in float32 and on the host.
  const auto logits = static_cast<std::uint64_t>(options.rows_max) * static_cast<std::uint64_t>(config.vocabulary);
  LINNET_RETURN_IF_ERROR(memory.take(3 * sizeof(float) * logits, "logits"));
  info_.step_rows_max = options.rows_max;
  info_.step_tokens_max = std::max(options.tokens_max, options.rows_max);
  LINNET_RETURN_IF_ERROR(reserve(config, options, memory.bytes()));
  describe(config);
  return {};
}

// KV is not touched here: caches grow with their sequences, within as many blocks as the memory has room for.
Status MlxExecutor::reserve(const ModelConfig& config, const MlxExecutorOptions& options, std::uint64_t bytes_left) {
  const auto block_bytes = static_cast<std::uint64_t>(cost_.kv_bytes) * kBlockTokens;
  const std::int64_t context = options.context != 0 ? options.context : config.context_max;
  const std::int64_t per_sequence = (context + kBlockTokens - 1) / kBlockTokens;
  const auto room = static_cast<std::int64_t>(std::min<std::uint64_t>(bytes_left / block_bytes, INT32_MAX / kBlockTokens));
  if (room < 1 || (options.context != 0 && room < per_sequence)) {
    return Error{ErrorCode::kTooLarge,
                 "a context of " + std::to_string(context) + " tokens needs " +
                     format_bytes(static_cast<std::uint64_t>(per_sequence) * block_bytes) + " of KV, and " +
                     format_bytes(bytes_left) + " are left of the memory budget; lower --context or raise --memory-budget",
                 "--context"};
  }
  info_.block_tokens = kBlockTokens;
  info_.block_count = static_cast<std::int32_t>(std::min(room, per_sequence * options.rows_max));
  info_.context_max = static_cast<std::int32_t>(std::min(context, room * kBlockTokens));
  return {};
}

void MlxExecutor::describe(const ModelConfig& config) {
  const Rates rates = rates_of(device_);
  info_.vocabulary = config.vocabulary;
  info_.step_cost_fixed_us = cost_.weight_bytes / rates.bytes * 1e6;
  info_.step_cost_per_token_us = cost_.flops / rates.flops * 1e6;
  info_.step_cost_per_token_context_us = 4.0 * config.layers * config.heads * config.head_dim / rates.flops * 1e6;
  info_.overlaps = on_gpu();
  info_.numerics_id = "mlx-" + loaded_version() + (on_gpu() ? "-gpu-" : "-cpu-") + kVersion;
}

Result<LayerCaches*> MlxExecutor::caches_at(const RowPlan& row) {
  LayerCaches& caches = sequences_[row.sequence];
  if (row.position == 0) caches.clear();
  if (caches.empty()) {
    for (std::int32_t layer = 0; layer < layers_; ++layer) caches.push_back(std::make_unique<ContiguousCache>(device_));
  }
  for (const std::unique_ptr<LayerCache>& cache : caches) {
    CHECK(cache->offset() >= row.position);
    if (cache->offset() > row.position) LINNET_RETURN_IF_ERROR(cache->trim(cache->offset() - row.position));
  }
  return &caches;
}

Ticket MlxExecutor::launch(const StepPlan& plan) {
  CHECK(plan_ == nullptr);
  plan_ = &plan;
  pending_.clear();
  started_ = guarded("to start a step", [this] { return start(); });
  return static_cast<Ticket>(++tickets_);
}

// Arrays are values: both sequences share them until one is written to. What is beyond the cloned tokens goes when a row runs.
void MlxExecutor::clone(const SequenceClone& clone) {
  LayerCaches copies;
  for (const std::unique_ptr<LayerCache>& cache : sequences_.at(clone.from)) {
    CHECK(cache->offset() >= clone.tokens);
    copies.push_back(cache->clone());
  }
  sequences_.insert_or_assign(clone.to, std::move(copies));
}

Status MlxExecutor::start() {
  for (const SequenceClone& each : plan_->clones) clone(each);
  std::vector<mx::array> kv;
  for (const RowPlan& row : plan_->rows) {
    LINNET_ASSIGN(LayerCaches* const caches, caches_at(row));
    ops_->begin({.tokens = plan_->inputs(row), .samples = row.samples, .caches = caches});
    const mx::array logits = model_->forward(*ops_);
    if (row.samples > 0) pending_.push_back(mx::contiguous(mx::astype(logits, mx::float32, device_), false, device_));
    for (const std::unique_ptr<LayerCache>& cache : *caches) cache->append_state(kv);
  }
  pending_logits_ = pending_.size();
  pending_.insert(pending_.end(), kv.begin(), kv.end());
  mx::async_eval(pending_);
  return {};
}

void MlxExecutor::sample(Ticket ticket, std::span<const RowSampling> rows) {
  CHECK(ticket == static_cast<Ticket>(tickets_) && plan_ != nullptr && rows.size() == plan_->rows.size());
  sampling_ = rows;
}

Result<const StepResult*> MlxExecutor::collect(Ticket ticket) {
  CHECK(ticket == static_cast<Ticket>(tickets_) && plan_ != nullptr);
  const Status done = started_.ok() ? guarded("in a step", [this] { return finish(); }) : started_;
  pending_.clear();
  if (done.ok()) {
    sample_rows();
  } else {
    forget_rows();
  }
  plan_ = nullptr;
  if (!done.ok()) return done.error();
  return &result_;
}

Status MlxExecutor::finish() {
  mx::eval(pending_);  // the step's one synchronisation
  logits_.clear();
  for (std::size_t i = 0; i < pending_logits_; ++i) {
    const float* values = pending_[i].data<float>();
    logits_.insert(logits_.end(), values, values + pending_[i].size());
  }
  tokens_since_clearing_ += static_cast<std::int32_t>(plan_->tokens.size());
  if (tokens_since_clearing_ >= kClearingTokens) {
    mx::clear_cache();
    tokens_since_clearing_ = 0;
  }
  return {};
}

void MlxExecutor::sample_rows() {
  result_.rows.clear();
  result_.tokens.clear();
  result_.logprobs.clear();
  for (std::size_t r = 0; r < plan_->rows.size(); ++r) {
    result_.rows.push_back({.token_begin = static_cast<std::int32_t>(result_.tokens.size()),
                            .token_count = plan_->rows[r].samples,
                            .logprobs_begin = static_cast<std::int32_t>(result_.logprobs.size())});
    sample_row(plan_->rows[r], sampling_[r], result_.rows.back());
  }
}

void MlxExecutor::sample_row(const RowPlan& plan, const RowSampling& how, RowResult& row) {
  const auto vocabulary = static_cast<std::size_t>(info_.vocabulary);
  for (std::int32_t i = 0; i < plan.samples; ++i) {
    const std::span<const float> logits = std::span(logits_).subspan(result_.tokens.size() * vocabulary, vocabulary);
    const std::uint64_t step = plan.sample_step + static_cast<std::uint64_t>(i);
    const std::optional<TokenId> token = sampler_->sample(logits, how.params, how.context.of_sample(i, plan.samples), step);
    row.failed = row.failed || !token;
    result_.tokens.push_back(token.value_or(TokenId{}));
    if (!how.params.logprobs) continue;
    result_.logprobs.push_back(token ? sampler_->logprobs(*token, *how.params.logprobs) : TokenLogprobs{});
  }
}

void MlxExecutor::forget_rows() {
  for (const RowPlan& row : plan_->rows) sequences_.erase(row.sequence);
}

}  // namespace linnet::mlx_backend
