// An executor without a model: a pure function from token history to next token, virtual time, and a watch over the KV.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/executor.h"
#include "linnet/sampling.h"

namespace linnet {

// The next token after `history` (prompt and answer so far); `step` is its index in the answer.
using NextToken = std::function<TokenId(std::span<const TokenId> history, const SamplingParams& params, std::uint64_t step)>;

// The default: a hash of history, sampling parameters and step, below `vocabulary`. Greedy ignores seed and step.
TokenId fake_next_token(std::span<const TokenId> history, const SamplingParams& params, std::uint64_t step,
                        std::int32_t vocabulary);

// What the fake reports for a token that it chose at `step`: a function of these alone.
TokenLogprobs fake_logprobs(TokenId token, std::uint64_t step, std::int32_t top_count, std::int32_t vocabulary);

struct FakeExecutorOptions {
  ExecutorInfo info = {.vocabulary = 1000,
                       .context_max = 2048,
                       .block_tokens = 32,
                       .block_count = 1024,
                       .block_bytes = 4096,
                       .step_tokens_max = 512,
                       .step_rows_max = 64,
                       .step_cost_fixed_us = 1000,
                       .step_cost_per_token_us = 200,
                       .step_cost_per_token_context_us = 0.05,
                       .numerics_id = "fake"};
  VirtualClock* clock = nullptr;  // each collect() moves it by the step's cost; none: steps take no virtual time
  double cost_ratio = 1;          // true cost of a step over the cost that `info` promises
  NextToken next_token;           // empty: fake_next_token
};

// Follows each block's content position by position. A plan that reads KV which was not computed from its own history at exactly
// that position, that writes a block which another row holds, that clones what was released, or whose history is not what its KV
// says, is a bug and aborts. Allocates nothing after the first steps.
class FakeExecutor final : public Executor {
 public:
  explicit FakeExecutor(FakeExecutorOptions options);

  const ExecutorInfo& info() const override { return options_.info; }
  Ticket launch(const StepPlan& plan) override;
  void sample(Ticket ticket, std::span<const RowSampling> rows) override;
  Result<const StepResult*> collect(Ticket ticket) override;
  void release(SequenceId sequence) override { last_released_[released_++ % last_released_.size()] = sequence; }

  // From now on the `nth` collect() (0: the next) fails as a whole; the `nth` sampled row is marked as failed.
  void fail_collect(std::uint64_t nth) { failing_collects_.push_back(collects_ + nth); }
  void fail_row(std::uint64_t nth) { failing_rows_.push_back(rows_sampled_ + nth); }

  std::uint64_t steps() const { return collects_; }
  std::uint64_t released() const { return released_; }  // sequences
  // Of all steps so far.
  std::uint64_t tokens_computed() const { return tokens_computed_; }

 private:
  // What one position of one block holds.
  struct KvEntry {
    std::uint64_t prefix = 0;  // hash of all tokens up to and with this one, and of how many they are
    TokenId token{};
  };

  void check_plan(const StepPlan& plan);
  void check_blocks(const StepPlan& plan, const RowPlan& row);
  void copy(const BlockCopy& copy);
  KvEntry& entry(const StepPlan& plan, const RowPlan& row, std::int32_t position);
  void write_kv(const StepPlan& plan, const RowPlan& row);
  void run_row(const StepPlan& plan, const RowPlan& row, const RowSampling& sampling);
  void sample_row(const RowPlan& row, const RowSampling& sampling);
  double cost_us(const StepPlan& plan) const;

  FakeExecutorOptions options_;
  std::vector<KvEntry> kv_;                      // [block][token in block]
  std::vector<std::uint64_t> block_seen_in_;     // step in which a row named the block
  std::vector<std::uint64_t> block_written_in_;  // and in which a row wrote there
  std::array<SequenceId, 64> last_released_{};
  std::vector<std::uint64_t> failing_collects_;
  std::vector<std::uint64_t> failing_rows_;
  std::vector<TokenId> history_;
  const StepPlan* plan_ = nullptr;  // between launch and collect
  std::span<const RowSampling> sampling_;
  StepResult result_;
  std::uint64_t launches_ = 0;
  std::uint64_t collects_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t rows_sampled_ = 0;
  std::uint64_t tokens_computed_ = 0;
};

}  // namespace linnet
