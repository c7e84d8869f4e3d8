#include "backends/cpu/executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "backends/cpu/weight_loader.h"
#include "base/check.h"
#include "base/memory_budget.h"
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
  return {1e10, 4e9};
}

constexpr std::int64_t kBlocksMax = INT32_MAX / kBlockTokens;  // positions and lengths are 32 bits

std::int64_t blocks_in(const MemoryLeft& memory, const KvLayout& layout) {
  return std::min(static_cast<std::int64_t>(memory.bytes() / layout.block_bytes()), kBlocksMax);
}

Error context_error(std::int64_t context, const KvLayout& layout, const MemoryLeft& memory) {
  return {ErrorCode::kTooLarge,
          "a context of " + std::to_string(context) + " tokens needs " +
              format_bytes(static_cast<std::uint64_t>(context) * layout.token_bytes()) + " of KV, and " +
              format_bytes(memory.bytes()) + " are left of the memory budget; lower --context or raise --memory-budget",
          "--context"};
}

}  // namespace

Result<std::unique_ptr<CpuExecutor>> CpuExecutor::create(const ModelFile& file, const CpuExecutorOptions& options) {
  const ModelConfig& config = file.config();
  if (options.context > config.context_max) {
    return Error{ErrorCode::kInvalidArgument,
                 "--context " + std::to_string(options.context) + " is more than the model was made for (" +
                     std::to_string(config.context_max) + ")",
                 "--context"};
  }
  const KernelSet* kernels = options.kernels;
  if (kernels == nullptr) {
    LINNET_ASSIGN(kernels, kernel_set_of_environment());
  }
  auto pool = std::make_unique<Pool>(PoolOptions{.threads = options.threads, .pin = options.pin_threads});
  std::unique_ptr<CpuExecutor> executor(new CpuExecutor(*kernels, std::move(pool)));
  MemoryLeft memory(options.memory_budget_bytes != 0 ? options.memory_budget_bytes : default_memory_budget());
  LINNET_RETURN_IF_ERROR(executor->load_weights(file, memory));
  LINNET_RETURN_IF_ERROR(executor->reserve(config, options, memory));
  return executor;
}

Status CpuExecutor::load_weights(const ModelFile& file, MemoryLeft& memory) {
  WeightLoader count(file, *kernels_, nullptr);
  LINNET_RETURN_IF_ERROR(bind_model<Ops>(file.config(), count));
  LINNET_RETURN_IF_ERROR(memory.take(count.bytes(), "weights"));
  LINNET_ASSIGN(weights_, Region::reserve(count.bytes(), "weights"));
  WeightLoader loader(file, *kernels_, weights_.data());
  LINNET_ASSIGN(model_, bind_model<Ops>(file.config(), loader));
  loader.run(*pool_);
  const ModelConfig& config = file.config();
  cost_.weight_bytes = loader.bytes_per_token();
  cost_.flops = 2 * loader.layer_weights();
  cost_.kv_bytes = static_cast<double>(KvLayout{config.layers, config.kv_heads, config.head_dim}.token_bytes());
  return {};
}

Status CpuExecutor::reserve(const ModelConfig& config, const CpuExecutorOptions& options, MemoryLeft& memory) {
  const KvLayout layout{.layers = config.layers, .kv_heads = config.kv_heads, .head_dim = config.head_dim};
  const std::int64_t wanted_context = options.context != 0 ? options.context : config.context_max;
  // What the memory could hold at most bounds what scratch is sized for.
  const std::int64_t context = std::min(wanted_context, blocks_in(memory, layout) * kBlockTokens);
  if (context < 1 || (options.context != 0 && context < wanted_context)) return context_error(wanted_context, layout, memory);
  const StepLimits limits{.rows_max = options.rows_max,
                          .tokens_max = std::max(options.tokens_max, options.rows_max),
                          .samples_max = options.rows_max,
                          .context_max = static_cast<std::int32_t>(context)};
  const AttentionKernels attention{.attention = kernels_->attention(config.head_dim), .kv_write = kernels_->kv_write};
  LINNET_RETURN_IF_ERROR(
      memory.take(Sampler::memory_bytes(config.vocabulary) * static_cast<std::size_t>(pool_->threads()), "samplers"));
  LINNET_ASSIGN(ops_, Ops::create(config, limits, *kernels_, attention, *pool_, memory));
  for (int thread = 0; thread < pool_->threads(); ++thread) samplers_.emplace_back(config.vocabulary);

  const std::int64_t blocks_of_context = (context + kBlockTokens - 1) / kBlockTokens;
  const std::int64_t blocks = std::min(blocks_of_context * options.rows_max, blocks_in(memory, layout));
  if (blocks < 1 || (options.context != 0 && blocks < blocks_of_context)) return context_error(wanted_context, layout, memory);
  LINNET_ASSIGN(kv_, KvPool::create(layout, static_cast<std::int32_t>(blocks)));
  kv_.touch(*pool_, kTouchLimit);
  describe(config, limits);
  return {};
}

void CpuExecutor::describe(const ModelConfig& config, const StepLimits& limits) {
  const Rates rates = rates_of(kernels_->name);
  const double threads = pool_->threads();
  info_.vocabulary = config.vocabulary;
  info_.block_tokens = kBlockTokens;
  info_.block_count = kv_.block_count();
  info_.context_max = std::min(limits.context_max, kv_.block_count() * kBlockTokens);
  info_.step_tokens_max = limits.tokens_max;
  info_.step_rows_max = limits.rows_max;
  info_.step_cost_fixed_us = cost_.weight_bytes / 30e9 * 1e6;
  info_.step_cost_per_token_us = cost_.flops / (rates.linear * threads) * 1e6;
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
  for (const SequenceClone& clone : plan_->clones) {
    if (clone.copies) std::memcpy(kv_.block(clone.copy_to), kv_.block(clone.copy_from), kv_.layout().block_bytes());
  }
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
  queue_.reset(static_cast<std::int64_t>(plan_->rows.size()));
  pool_->run([&](int thread, int) {
    Sampler& sampler = samplers_[static_cast<std::size_t>(thread)];
    for (std::int64_t r = 0, end = 0; queue_.take(r, end);) sample_row(static_cast<std::size_t>(r), sampler);
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
