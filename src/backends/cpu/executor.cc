#include "backends/cpu/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "backends/cpu/weight_loader.h"
#include "base/check.h"
#include "linnet/version.h"

namespace linnet::cpu {
namespace {

constexpr auto kTouchLimit = std::chrono::milliseconds(60);  // of start-up, spent on making KV pages present

// Operations a second that a thread of this kernel set does in linear layers and in attention, roughly: the planner's first
// guess.
struct Rates {
  double linear;
  double attention;
};
Rates rates_of(std::string_view kernels) {
  if (kernels == "amx") return {5e11, 5e11};
  if (kernels == "avx512") return {1e11, 5e10};
  if (kernels == "avx2") return {4e10, 2.5e10};
  return {1e10, 4e9};
}

}  // namespace

Result<std::unique_ptr<CpuExecutor>> CpuExecutor::create(const ModelFile& file, const CpuExecutorOptions& options) {
  LINNET_ASSIGN(const MemorySheet sheet, plan_memory(file, options));
  std::unique_ptr<CpuExecutor> executor(new CpuExecutor(sheet, options));
  LINNET_RETURN_IF_ERROR(executor->load_weights(file));
  LINNET_RETURN_IF_ERROR(executor->reserve(file.config()));
  return executor;
}

CpuExecutor::CpuExecutor(const MemorySheet& sheet, const CpuExecutorOptions& options)
    : sheet_(sheet),
      kernels_(sheet.kernels),
      own_pool_(options.pool == nullptr
                    ? std::make_unique<Pool>(PoolOptions{.threads = sheet.threads, .pin = options.pin_threads})
                    : nullptr),
      pool_(options.pool == nullptr ? own_pool_.get() : options.pool) {}

Status CpuExecutor::load_weights(const ModelFile& file) {
  LINNET_ASSIGN(weights_, Region::reserve(sheet_.weights, "weights"));
  WeightLoader loader(file, *kernels_, weights_.data());
  LINNET_ASSIGN(model_, bind_model<Ops>(file.config(), loader));
  loader.run(*pool_);
  return {};
}

Status CpuExecutor::reserve(const ModelConfig& config) {
  LINNET_ASSIGN(ops_, Ops::create(config, sheet_.limits, *kernels_, *pool_));
  for (int thread = 0; thread < pool_->threads(); ++thread) samplers_.emplace_back(config.vocabulary);
  LINNET_ASSIGN(kv_, KvPool::create(sheet_.kv_layout, sheet_.kv_blocks));
  kv_.touch(*pool_, kTouchLimit);
  CHECK(weights_.size() == sheet_.weights && ops_->reserved_bytes() == sheet_.scratch && kv_.reserved_bytes() == sheet_.kv());
  describe(config);
  return {};
}

void CpuExecutor::describe(const ModelConfig& config) {
  const StepLimits& limits = sheet_.limits;
  const TokenCost& cost = sheet_.token_cost;
  const Rates rates = rates_of(kernels_->name);
  const double threads = pool_->threads();
  info_.vocabulary = config.vocabulary;
  info_.block_tokens = kBlockTokens;
  info_.block_count = kv_.block_count();
  info_.block_bytes = kv_.layout().block_bytes();
  info_.context_max = std::min(limits.context_max, kv_.block_count() * kBlockTokens);
  info_.step_tokens_max = limits.tokens_max;
  info_.step_rows_max = limits.rows_max;
  info_.step_cost_fixed_us = cost.weight_bytes / 30e9 * 1e6;
  info_.step_cost_per_token_us = cost.flops / (rates.linear * threads) * 1e6;
  info_.step_cost_per_token_context_us = 4.0 * config.layers * config.heads * config.head_dim / (rates.attention * threads) * 1e6;
  info_.numerics_id =
      std::string("cpu-") + std::string(kernels_->name) + "-" + kVersion + "-kv-f16-" + std::to_string(kBlockTokens);
  result_.rows.reserve(static_cast<std::size_t>(limits.rows_max));
  result_.tokens.reserve(static_cast<std::size_t>(limits.samples_max));
  result_.logprobs.reserve(static_cast<std::size_t>(limits.samples_max));
}

Ticket CpuExecutor::launch(const StepPlan& plan) {
  CHECK(plan_ == nullptr);
  plan_ = &plan;
  return static_cast<Ticket>(++tickets_);
}

void CpuExecutor::sample(Ticket ticket, std::span<const RowSampling> rows) {
  CHECK(ticket == static_cast<Ticket>(tickets_) && plan_ != nullptr && rows.size() == plan_->rows.size());
  sampling_ = rows;
}

Result<const StepResult*> CpuExecutor::collect(Ticket ticket) {
  CHECK(ticket == static_cast<Ticket>(tickets_) && plan_ != nullptr);
  for (const BlockCopy& copy : plan_->copies) std::memcpy(kv_.block(copy.to), kv_.block(copy.from), kv_.layout().block_bytes());
  pool_->begin_step();
  ops_->begin(*plan_, kv_.blocks());
  const Ops::Tensor logits = model_->forward(*ops_);
  logits_ = {logits.data, static_cast<std::size_t>(logits.rows) * static_cast<std::size_t>(logits.cols)};
  sample_rows();
  pool_->end_step();
  plan_ = nullptr;
  return &result_;
}

void CpuExecutor::sample_rows() {
  result_.rows.clear();
  std::int32_t samples = 0;
  std::int32_t captures = 0;
  for (std::size_t i = 0; i < plan_->rows.size(); ++i) {
    const std::int32_t count = plan_->rows[i].samples;
    result_.rows.push_back({.token_begin = samples,
                            .token_count = count,
                            .logprobs_begin = captures,
                            .failed = ops_->row_failed(static_cast<std::int32_t>(i))});
    samples += count;
    captures += sampling_[i].params.logprobs ? count : 0;
  }
  result_.tokens.resize(static_cast<std::size_t>(samples));
  result_.logprobs.resize(static_cast<std::size_t>(captures));
  pool_->deal(static_cast<std::int64_t>(plan_->rows.size()), [&](int thread, WorkQueue& pieces) {
    Sampler& sampler = samplers_[static_cast<std::size_t>(thread)];
    for (std::int64_t r = 0, end = 0; pieces.take(r, end);) sample_row(static_cast<std::size_t>(r), sampler);
  });
}

void CpuExecutor::sample_row(std::size_t index, Sampler& sampler) {
  RowResult& row = result_.rows[index];
  const RowSampling& how = sampling_[index];
  const auto vocabulary = static_cast<std::size_t>(info_.vocabulary);
  for (std::int32_t i = 0; i < row.token_count && !row.failed; ++i) {
    const auto at = static_cast<std::size_t>(row.token_begin + i);
    const std::uint64_t step = plan_->rows[index].sample_step + static_cast<std::uint64_t>(i);
    const std::optional<TokenId> token =
        sampler.sample(logits_.subspan(at * vocabulary, vocabulary), how.params, how.context.of_sample(i, row.token_count), step);
    if (!token) {
      row.failed = true;
      return;
    }
    result_.tokens[at] = *token;
    if (how.params.logprobs) {
      result_.logprobs[static_cast<std::size_t>(row.logprobs_begin + i)] = sampler.logprobs(*token, *how.params.logprobs);
    }
  }
}

}  // namespace linnet::cpu
