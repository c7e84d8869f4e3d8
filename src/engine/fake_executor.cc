#include "engine/fake_executor.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace linnet {

TokenId fake_next_token(std::span<const TokenId> history, const SamplingParams& params, std::uint64_t step,
                        std::int32_t vocabulary) {
  std::uint64_t hash = history.size();
  for (const TokenId token : history) hash = mix64(hash ^ static_cast<std::uint64_t>(token));
  if (params.temperature > 0) {
    hash = mix64(hash ^ random_bits(params.seed, step));
    for (const float value : {params.temperature, params.top_p, params.min_p})
      hash = mix64(hash ^ std::bit_cast<std::uint32_t>(value));
    hash = mix64(hash ^ static_cast<std::uint64_t>(params.top_k));
  }
  return static_cast<TokenId>(hash % static_cast<std::uint64_t>(vocabulary));
}

FakeExecutor::FakeExecutor(FakeExecutorOptions options) : options_(std::move(options)) {
  const ExecutorInfo& info = options_.info;
  CHECK(info.vocabulary > 0 && info.context_max > 0 && info.block_tokens > 0 && info.block_count > 0);
  CHECK(info.step_tokens_max > 0 && info.step_rows_max > 0);
  const auto blocks = static_cast<std::size_t>(info.block_count);
  kv_.resize(blocks * static_cast<std::size_t>(info.block_tokens));
  block_seen_in_.resize(blocks);
  history_.reserve(static_cast<std::size_t>(info.context_max));
  if (!options_.next_token) {
    options_.next_token = [vocabulary = info.vocabulary](std::span<const TokenId> history, const SamplingParams& params,
                                                         std::uint64_t step) {
      return fake_next_token(history, params, step, vocabulary);
    };
  }
}

Ticket FakeExecutor::launch(const StepPlan& plan) {
  CHECK_MSG(plan_ == nullptr, "a step is still open");
  ++launches_;
  check_plan(plan);
  plan_ = &plan;
  return Ticket{launches_};
}

void FakeExecutor::sample(Ticket ticket, std::span<const RowSampling> rows) {
  CHECK(plan_ != nullptr && ticket == Ticket{launches_});
  CHECK(rows.size() == plan_->rows.size());
  sampling_ = rows;
}

Result<const StepResult*> FakeExecutor::collect(Ticket ticket) {
  CHECK(plan_ != nullptr && ticket == Ticket{launches_});
  CHECK_MSG(sampling_.size() == plan_->rows.size(), "collect before sample");
  const StepPlan& plan = *std::exchange(plan_, nullptr);
  const std::span<const RowSampling> sampling = std::exchange(sampling_, {});
  if (options_.clock != nullptr) {
    const std::chrono::duration<double, std::micro> cost(cost_us(plan) * options_.cost_ratio);
    options_.clock->advance(std::chrono::duration_cast<Clock::Duration>(cost));
  }
  const std::uint64_t nth = collects_++;
  if (std::find(failing_collects_.begin(), failing_collects_.end(), nth) != failing_collects_.end()) {
    return Error{ErrorCode::kInternal, "step " + std::to_string(nth) + " was told to fail", ""};
  }
  result_.rows.clear();
  result_.tokens.clear();
  // All rows write before any reads: a row that reaches into another's blocks finds its traces.
  for (const RowPlan& row : plan.rows) write_kv(plan, row);
  for (std::size_t index = 0; index < plan.rows.size(); ++index) run_row(plan, plan.rows[index], sampling[index]);
  return &result_;
}

void FakeExecutor::check_plan(const StepPlan& plan) {
  const ExecutorInfo& info = options_.info;
  CHECK(!plan.empty());
  CHECK(plan.rows.size() <= static_cast<std::size_t>(info.step_rows_max));
  CHECK(plan.tokens.size() <= static_cast<std::size_t>(info.step_tokens_max));
  std::int32_t inputs = 0;
  std::int32_t blocks = 0;
  for (const RowPlan& row : plan.rows) {
    CHECK(row.input_count >= 1 && row.position >= 0);
    CHECK(row.samples >= 0 && row.samples <= row.input_count);
    CHECK(row.input_begin == inputs && row.block_begin == blocks);
    inputs += row.input_count;
    blocks += row.block_count;
    CHECK(row.position + row.input_count <= info.context_max);
    CHECK(row.block_count * info.block_tokens >= row.position + row.input_count);
    for (const TokenId token : plan.inputs(row)) {
      CHECK(static_cast<std::int32_t>(token) >= 0 && static_cast<std::int32_t>(token) < info.vocabulary);
    }
    for (const BlockId block : plan.block_table(row)) {
      CHECK(index_of(block) < block_seen_in_.size());
      CHECK_MSG(block_seen_in_[index_of(block)] != launches_, "two rows hold one block");
      block_seen_in_[index_of(block)] = launches_;
    }
  }
  CHECK(static_cast<std::size_t>(inputs) == plan.tokens.size());
  CHECK(static_cast<std::size_t>(blocks) == plan.blocks.size());
}

FakeExecutor::KvEntry& FakeExecutor::entry(const StepPlan& plan, const RowPlan& row, std::int32_t position) {
  const std::int32_t block_tokens = options_.info.block_tokens;
  const BlockId block = plan.block_table(row)[static_cast<std::size_t>(position / block_tokens)];
  return kv_[index_of(block) * static_cast<std::size_t>(block_tokens) + static_cast<std::size_t>(position % block_tokens)];
}

void FakeExecutor::write_kv(const StepPlan& plan, const RowPlan& row) {
  const std::span<const TokenId> inputs = plan.inputs(row);
  for (std::int32_t offset = 0; offset < row.input_count; ++offset) {
    const std::int32_t position = row.position + offset;
    entry(plan, row, position) = {.owner = row.sequence, .position = position, .token = inputs[static_cast<std::size_t>(offset)]};
  }
  tokens_computed_ += static_cast<std::uint64_t>(row.input_count);
}

void FakeExecutor::run_row(const StepPlan& plan, const RowPlan& row, const RowSampling& sampling) {
  const std::int32_t known = row.position + row.input_count;
  history_.clear();
  for (std::int32_t position = 0; position < known; ++position) {
    const KvEntry& held = entry(plan, row, position);
    CHECK_MSG(held.owner == row.sequence, "a row reads KV of another sequence, or KV that was never computed");
    CHECK_MSG(held.position == position, "a row reads KV of another position");
    history_.push_back(held.token);
  }
  RowResult result{.token_begin = static_cast<std::int32_t>(result_.tokens.size())};
  for (std::int32_t index = 0; index < row.samples; ++index) {
    const std::uint64_t nth = rows_sampled_++;
    result.failed = result.failed || std::find(failing_rows_.begin(), failing_rows_.end(), nth) != failing_rows_.end();
    const auto seen = static_cast<std::size_t>(known - row.samples + 1 + index);
    const auto step = row.sample_step + static_cast<std::uint64_t>(index);
    result_.tokens.push_back(options_.next_token(std::span(history_).first(seen), sampling.params, step));
    ++result.token_count;
  }
  result_.rows.push_back(result);
}

double FakeExecutor::cost_us(const StepPlan& plan) const {
  const ExecutorInfo& info = options_.info;
  double cost = info.step_cost_fixed_us;
  for (const RowPlan& row : plan.rows) {
    for (std::int32_t offset = 0; offset < row.input_count; ++offset) {
      cost += info.step_cost_per_token_us + info.step_cost_per_token_context_us * (row.position + offset);
    }
  }
  return cost;
}

}  // namespace linnet
