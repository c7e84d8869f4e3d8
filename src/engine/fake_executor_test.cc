#include "engine/fake_executor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <utility>
#include <vector>

namespace linnet {
namespace {

FakeExecutorOptions small() {
  FakeExecutorOptions options;
  options.info.block_tokens = 4;
  options.info.block_count = 8;
  return options;
}

struct RowOf {
  std::uint64_t sequence;
  std::int32_t position;
  std::vector<std::int32_t> inputs;
  std::vector<std::uint32_t> blocks;
  std::int32_t samples = 1;
};

StepPlan plan_of(std::initializer_list<RowOf> rows) {
  StepPlan plan;
  for (const RowOf& row : rows) {
    plan.rows.push_back({.sequence = SequenceId{row.sequence},
                         .position = row.position,
                         .samples = row.samples,
                         .input_begin = static_cast<std::int32_t>(plan.tokens.size()),
                         .input_count = static_cast<std::int32_t>(row.inputs.size()),
                         .block_begin = static_cast<std::int32_t>(plan.blocks.size()),
                         .block_count = static_cast<std::int32_t>(row.blocks.size())});
    for (const std::int32_t token : row.inputs) plan.tokens.push_back(TokenId{token});
    for (const std::uint32_t block : row.blocks) plan.blocks.push_back(BlockId{block});
  }
  return plan;
}

Result<const StepResult*> run(FakeExecutor& executor, const StepPlan& plan) {
  const std::vector<RowSampling> sampling(plan.rows.size(), {.params = {.temperature = 0}});
  const Ticket ticket = executor.launch(plan);
  executor.sample(ticket, sampling);
  return executor.collect(ticket);
}

TEST(FakeExecutor, NextTokenDependsOnHistoryNotOnCuts) {
  FakeExecutor whole(small());
  const StepResult* result = run(whole, plan_of({{1, 0, {5, 6, 7, 8, 9}, {3, 1}}})).value();
  const TokenId token = result->tokens[0];
  EXPECT_EQ(token, fake_next_token(std::vector<TokenId>{TokenId{5}, TokenId{6}, TokenId{7}, TokenId{8}, TokenId{9}},
                                   {.temperature = 0}, 0, 1000));
  FakeExecutor cut(small());
  run(cut, plan_of({{1, 0, {5, 6}, {0}, 0}, {2, 0, {1}, {5}}})).value();
  result = run(cut, plan_of({{2, 1, {3}, {5}}, {1, 2, {7, 8, 9}, {0, 2}}})).value();
  EXPECT_EQ(result->of(result->rows[1])[0], token);
  EXPECT_EQ(cut.tokens_computed(), 7U);
}

TEST(FakeExecutor, SamplingParametersSeedAndStepCount) {
  const std::vector<TokenId> history{TokenId{1}};
  const TokenId base = fake_next_token(history, {.seed = 1}, 0, 1'000'000);
  EXPECT_NE(fake_next_token(history, {.seed = 2}, 0, 1'000'000), base);
  EXPECT_NE(fake_next_token(history, {.seed = 1}, 1, 1'000'000), base);
  EXPECT_NE(fake_next_token(history, {.top_p = 0.5F, .seed = 1}, 0, 1'000'000), base);
  EXPECT_EQ(fake_next_token(history, {.temperature = 0, .seed = 1}, 0, 1000),
            fake_next_token(history, {.temperature = 0, .seed = 2}, 9, 1000));
}

TEST(FakeExecutorDeathTest, WrongPlansAbort) {
  FakeExecutor executor(small());
  run(executor, plan_of({{1, 0, {5, 6, 7, 8, 9}, {0, 1}}, {2, 0, {5, 6, 7, 8, 8}, {2, 3}}})).value();
  const StepPlan both_write = plan_of({{1, 5, {1}, {0, 1}}, {2, 5, {1}, {2, 1}}});
  EXPECT_DEATH(run(executor, both_write).ok(), "a row holds a block that another one writes");
  const StepPlan one_reads = plan_of({{2, 8, {1}, {2, 1, 4}, 0}, {1, 5, {1}, {0, 1}}});
  EXPECT_DEATH(run(executor, one_reads).ok(), "a row writes a block that another one holds");
  EXPECT_DEATH(run(executor, plan_of({{1, 5, {1}, {4, 3}}})).ok(), "another history");
  EXPECT_DEATH(run(executor, plan_of({{1, 6, {1}, {0, 1}}})).ok(), "or KV that was never");
  EXPECT_DEATH(run(executor, plan_of({{1, 5, {1}, {1, 0}}})).ok(), "or position");
  EXPECT_DEATH(run(executor, plan_of({{1, 5, {1}, {0}}})).ok(), "CHECK");
  EXPECT_DEATH(run(executor, plan_of({{1, 5, {1000}, {0, 1}}})).ok(), "CHECK");
  EXPECT_DEATH(run(executor, plan_of({{1, 5, {1}, {0, 8}}})).ok(), "CHECK");
  EXPECT_DEATH(run(executor, plan_of({})).ok(), "CHECK");
}

TEST(FakeExecutor, ClonesShareWholeBlocksAndCopyTheLast) {
  FakeExecutor executor(small());
  run(executor, plan_of({{1, 0, {5, 6, 7, 8, 9, 1}, {0, 1}}})).value();
  StepPlan plan = plan_of({{2, 5, {1}, {0, 2}}, {1, 6, {3}, {0, 1}}});
  plan.clones = {{.from = SequenceId{1}, .to = SequenceId{2}, .tokens = 5}};
  plan.copies = {{.sequence = SequenceId{2}, .from = BlockId{1}, .to = BlockId{2}}};
  const StepResult* result = run(executor, plan).value();
  const std::vector<TokenId> history = {TokenId{5}, TokenId{6}, TokenId{7}, TokenId{8}, TokenId{9}, TokenId{1}};
  EXPECT_EQ(result->of(result->rows[0])[0], fake_next_token(history, {.temperature = 0}, 0, 1000));
  executor.release(SequenceId{1});
  EXPECT_DEATH(run(executor, plan).ok(), "cloned that was released");
}

TEST(FakeExecutor, MasksAndLogprobs) {
  FakeExecutor executor(small());
  const StepPlan plan = plan_of({{1, 0, {5}, {0}}, {2, 0, {6}, {1}}});
  std::vector<std::uint32_t> mask(32);
  mask[2] = 1U << 3U;
  const std::vector<RowSampling> sampling = {{.params = {.logprobs = 2}}, {.params = {.logprobs = 0}, .context = {.mask = mask}}};
  const auto run_with = [&] {
    const Ticket ticket = executor.launch(plan);
    executor.sample(ticket, sampling);
    return executor.collect(ticket).value();
  };
  const StepResult* result = run_with();
  EXPECT_EQ(result->tokens[1], TokenId{67});
  EXPECT_EQ(result->logprobs[0], fake_logprobs(result->tokens[0], 0, 2, 1000));
  EXPECT_EQ(result->logprobs[1], fake_logprobs(TokenId{67}, 0, 0, 1000));
  mask[2] = 0;
  EXPECT_TRUE(run_with()->rows[1].failed);
}

TEST(FakeExecutor, FailsWhenTold) {
  FakeExecutor executor(small());
  executor.fail_collect(1);
  executor.fail_row(1);
  const StepPlan plan = plan_of({{1, 0, {5}, {0}}, {2, 0, {5}, {1}}});
  const StepResult* result = run(executor, plan).value();
  EXPECT_FALSE(result->rows[0].failed);
  EXPECT_TRUE(result->rows[1].failed);
  EXPECT_FALSE(run(executor, plan).ok());
  EXPECT_TRUE(run(executor, plan).ok());
}

TEST(FakeExecutor, MovesVirtualTimeByTheStepsCost) {
  VirtualClock clock;
  FakeExecutorOptions options = small();
  options.clock = &clock;
  options.cost_ratio = 2;
  options.info.step_cost_fixed_us = 10;
  options.info.step_cost_per_token_us = 3;
  options.info.step_cost_per_token_context_us = 1;
  FakeExecutor executor(std::move(options));
  run(executor, plan_of({{1, 0, {5, 6, 7}, {0}}, {2, 0, {5}, {1}}})).value();
  EXPECT_EQ(clock.now(), std::chrono::microseconds(2 * (10 + 4 * 3 + 0 + 1 + 2)));
}

TEST(FakeExecutor, PlaysAScript) {
  FakeExecutorOptions options = small();
  options.next_token = [](std::span<const TokenId> history, const SamplingParams&, std::uint64_t step) {
    return TokenId{static_cast<std::int32_t>(history.size() * 100 + step)};
  };
  FakeExecutor executor(std::move(options));
  EXPECT_EQ(run(executor, plan_of({{1, 0, {5, 6}, {0}}})).value()->tokens[0], TokenId{200});
}

}  // namespace
}  // namespace linnet
