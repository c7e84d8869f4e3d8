#include "engine/fake_executor.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
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
    hash = mix64(hash ^ std::bit_cast<std::uint32_t>(params.xtc_probability));
  }
  return static_cast<TokenId>(hash % static_cast<std::uint64_t>(vocabulary));
}

TokenLogprobs fake_logprobs(TokenId token, std::uint64_t step, std::int32_t top_count, std::int32_t vocabulary) {
  TokenLogprobs logprobs{.logprob = -static_cast<float>(step) - static_cast<float>(token) / 1024, .top_count = top_count};
  for (std::int32_t rank = 0; rank < top_count; ++rank) {
    logprobs.top[static_cast<std::size_t>(rank)] = {.token = TokenId{(static_cast<std::int32_t>(token) + rank) % vocabulary},
                                                    .logprob = -static_cast<float>(rank)};
  }
  return logprobs;
}

namespace {

// The first token from `token` on, in a circle, that the mask allows; nothing if there is none.
std::optional<TokenId> allowed_from(TokenId token, std::span<const std::uint32_t> mask, std::int32_t vocabulary) {
  if (mask.empty()) return token;
  for (std::int32_t step = 0; step < vocabulary; ++step) {
    const auto id = static_cast<std::size_t>((static_cast<std::int32_t>(token) + step) % vocabulary);
    if (id / 32 < mask.size() && ((mask[id / 32] >> (id % 32)) & 1U) != 0) return static_cast<TokenId>(id);
  }
  return std::nullopt;
}

// Of a history that is one token longer.
std::uint64_t longer_prefix(std::uint64_t prefix, TokenId token, std::int32_t position) {
  return mix64(mix64(prefix ^ static_cast<std::uint64_t>(token)) + static_cast<std::uint64_t>(position) + 1);
}

}  // namespace

FakeExecutor::FakeExecutor(FakeExecutorOptions options) : options_(std::move(options)) {
  const ExecutorInfo& info = options_.info;
  CHECK(info.vocabulary > 0 && info.context_max > 0 && info.block_tokens > 0 && info.block_count > 0);
  CHECK(info.step_tokens_max > 0 && info.step_rows_max > 0);
  const auto blocks = static_cast<std::size_t>(info.block_count);
  kv_.resize(blocks * static_cast<std::size_t>(info.block_tokens));
  block_seen_in_.resize(blocks);
  block_written_in_.resize(blocks);
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
  for (const SequenceClone& clone : plan.clones) {
    CHECK_MSG(std::find(last_released_.begin(), last_released_.end(), clone.from) == last_released_.end(),
              "a sequence is cloned that was released");
  }
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
  result_.logprobs.clear();
  for (const BlockCopy& made : plan.copies) copy(made);
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
    check_blocks(plan, row);
  }
  CHECK(static_cast<std::size_t>(inputs) == plan.tokens.size());
  CHECK(static_cast<std::size_t>(blocks) == plan.blocks.size());
}

void FakeExecutor::check_blocks(const StepPlan& plan, const RowPlan& row) {
  const std::span<const BlockId> table = plan.block_table(row);
  const auto first_written = static_cast<std::size_t>(row.position / options_.info.block_tokens);
  for (std::size_t place = 0; place < table.size(); ++place) {
    const std::size_t block = index_of(table[place]);
    CHECK(block < block_seen_in_.size());
    CHECK_MSG(block_written_in_[block] != launches_, "a row holds a block that another one writes");
    if (place >= first_written) {
      CHECK_MSG(block_seen_in_[block] != launches_, "a row writes a block that another one holds");
      block_written_in_[block] = launches_;
    }
    block_seen_in_[block] = launches_;
  }
}

void FakeExecutor::copy(const BlockCopy& copy) {
  const auto block_tokens = static_cast<std::size_t>(options_.info.block_tokens);
  const KvEntry* from = &kv_[index_of(copy.from) * block_tokens];
  std::copy(from, from + block_tokens, &kv_[index_of(copy.to) * block_tokens]);
}

FakeExecutor::KvEntry& FakeExecutor::entry(const StepPlan& plan, const RowPlan& row, std::int32_t position) {
  const std::int32_t block_tokens = options_.info.block_tokens;
  const BlockId block = plan.block_table(row)[static_cast<std::size_t>(position / block_tokens)];
  return kv_[index_of(block) * static_cast<std::size_t>(block_tokens) + static_cast<std::size_t>(position % block_tokens)];
}

void FakeExecutor::write_kv(const StepPlan& plan, const RowPlan& row) {
  const std::span<const TokenId> inputs = plan.inputs(row);
  std::uint64_t prefix = row.position == 0 ? 0 : entry(plan, row, row.position - 1).prefix;
  for (std::int32_t offset = 0; offset < row.input_count; ++offset) {
    const std::int32_t position = row.position + offset;
    const TokenId token = inputs[static_cast<std::size_t>(offset)];
    prefix = longer_prefix(prefix, token, position);
    entry(plan, row, position) = {.prefix = prefix, .token = token};
  }
  tokens_computed_ += static_cast<std::uint64_t>(row.input_count);
}

void FakeExecutor::run_row(const StepPlan& plan, const RowPlan& row, const RowSampling& sampling) {
  const std::int32_t known = row.position + row.input_count;
  history_.clear();
  std::uint64_t prefix = 0;
  for (std::int32_t position = 0; position < known; ++position) {
    const KvEntry& held = entry(plan, row, position);
    prefix = longer_prefix(prefix, held.token, position);
    CHECK_MSG(held.prefix == prefix, "a row reads KV of another history or position, or KV that was never computed");
    history_.push_back(held.token);
  }
  const std::span<const TokenId> told = sampling.context.history;
  CHECK_MSG(row.samples == 0 || told.empty() || std::equal(told.begin(), told.end(), history_.begin(), history_.end()),
            "a row's history is not that of its KV");
  sample_row(row, sampling);
}

void FakeExecutor::sample_row(const RowPlan& row, const RowSampling& sampling) {
  RowResult result{.token_begin = static_cast<std::int32_t>(result_.tokens.size()),
                   .logprobs_begin = static_cast<std::int32_t>(result_.logprobs.size())};
  for (std::int32_t index = 0; index < row.samples; ++index) {
    const std::uint64_t nth = rows_sampled_++;
    result.failed = result.failed || std::find(failing_rows_.begin(), failing_rows_.end(), nth) != failing_rows_.end();
    const auto seen = history_.size() - static_cast<std::size_t>(row.samples - 1 - index);
    const auto step = row.sample_step + static_cast<std::uint64_t>(index);
    const TokenId free = options_.next_token(std::span(history_).first(seen), sampling.params, step);
    const std::optional<TokenId> token =
        allowed_from(free, sampling.context.of_sample(index, row.samples).mask, options_.info.vocabulary);
    result.failed = result.failed || !token;
    result_.tokens.push_back(token.value_or(free));
    if (sampling.params.logprobs) {
      result_.logprobs.push_back(fake_logprobs(result_.tokens.back(), step, *sampling.params.logprobs, options_.info.vocabulary));
    }
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
