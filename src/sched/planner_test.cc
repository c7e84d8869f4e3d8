#include "sched/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/random.h"

namespace linnet {
namespace {

constexpr std::int32_t kBlockTokens = 32;

PlannerLimits limits() {
  return {.rows_max = 8,
          .step_tokens_max = 2048,
          .block_tokens = kBlockTokens,
          .gap_us = 60000,
          .cost = {.fixed_us = 1000, .per_token_us = 200, .per_token_context_us = 0.01}};
}

// Sequences with a prompt of which `computed` tokens are done; `generated` > 0 makes a decode row.
class Rows {
 public:
  Sequence& add(std::int32_t prompt, std::int32_t computed = 0, std::int32_t generated = 0, std::uint64_t last_step = 1) {
    const std::uint64_t id = sequences_.size() + 1;
    std::vector<TokenId> tokens;
    for (std::int32_t index = 0; index < prompt; ++index) tokens.push_back(TokenId{index});
    auto sequence = std::make_unique<Sequence>(SequenceId{id}, tokens, prompt + generated + 100);
    std::vector<BlockId> blocks;
    for (std::int32_t block = 0; block < 1 + (prompt + generated + 100) / kBlockTokens; ++block) {
      blocks.push_back(BlockId{static_cast<std::uint32_t>(id * 1000) + static_cast<std::uint32_t>(block)});
    }
    sequence->set_block_table(blocks);
    const std::int32_t done = generated > 0 ? prompt : computed;
    if (done > 0) sequence->advance(done, last_step);
    for (std::int32_t index = 0; index < generated; ++index) {
      if (index > 0) sequence->advance(1, last_step + static_cast<std::uint64_t>(index));
      sequence->append(TokenId{1000 + index});
    }
    sequences_.push_back(std::move(sequence));
    pointers_.push_back(sequences_.back().get());
    return *sequences_.back();
  }
  Schedule plan(const PlannerLimits& with = limits(), double cost_ratio = 1) const {
    Schedule schedule;
    Planner(with).plan(pointers_, cost_ratio, schedule);
    return schedule;
  }
  const std::vector<const Sequence*>& all() const { return pointers_; }

 private:
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<const Sequence*> pointers_;
};

TEST(Planner, NothingRunnableIsAnEmptyPlan) { EXPECT_TRUE(Rows().plan().plan.empty()); }

TEST(Planner, DecodeRowsComeFirstAndPrefillFillsTheGap) {
  Rows rows;
  rows.add(3, 0, 2);
  rows.add(4000);
  rows.add(5, 0, 1);
  const Schedule schedule = rows.plan();
  ASSERT_EQ(schedule.shares.size(), 3U);
  EXPECT_EQ(schedule.shares[0], (Share{.index = 0, .inputs = 1}));
  EXPECT_EQ(schedule.shares[2], (Share{.index = 2, .inputs = 1}));
  // (0.75 * 60000 - 1000 - 2 * 200) / 200, less the positions' cost, down to a block's end.
  EXPECT_EQ(schedule.shares[1], (Share{.index = 1, .inputs = 192}));
  EXPECT_LE(schedule.cost_us, 45000);
  const RowPlan& decode = schedule.plan.rows[0];
  EXPECT_EQ(decode.position, 4);
  EXPECT_EQ(decode.samples, 1);
  EXPECT_EQ(decode.sample_step, 2U);
  EXPECT_EQ(schedule.plan.inputs(decode)[0], TokenId{1001});
  EXPECT_EQ(schedule.plan.rows[1].samples, 0);
  EXPECT_EQ(schedule.plan.rows[1].block_count, 6);
}

TEST(Planner, ASlowMachineGetsSmallerChunks) {
  Rows rows;
  rows.add(3, 0, 2);
  rows.add(4000);
  EXPECT_EQ(rows.plan(limits(), 2).shares[1].inputs, 96);
  EXPECT_EQ(rows.plan(limits(), 16).shares[1].inputs, 8);
  PlannerLimits hurried = limits();
  hurried.gap_us = 5000;  // less than its quarter pays for, after the decode row and the fixed cost
  EXPECT_EQ(rows.plan(hurried).shares[1].inputs, 12);
  hurried.gap_us = 0;
  EXPECT_EQ(rows.plan(hurried).shares[1].inputs, 1) << "prefill always moves";
  hurried.gap_us = 100'000;
  hurried.cost.fixed_us = 90'000;
  EXPECT_EQ(rows.plan(hurried).shares[1].inputs, kBlockTokens) << "a quarter of the gap, at most a block";
}

TEST(Planner, AloneChunksAreLarge) {
  Rows rows;
  rows.add(4000);
  EXPECT_EQ(rows.plan().shares[0].inputs, 512);
  PlannerLimits small = limits();
  small.step_tokens_max = 100;
  EXPECT_EQ(rows.plan(small).shares[0].inputs, 96);
  small.step_tokens_max = 20;
  EXPECT_EQ(rows.plan(small).shares[0].inputs, 20);
}

TEST(Planner, LastChunkSamples) {
  Rows rows;
  rows.add(600, 512);
  const Schedule schedule = rows.plan();
  EXPECT_EQ(schedule.plan.rows[0].input_count, 88);
  EXPECT_EQ(schedule.plan.rows[0].samples, 1);
  EXPECT_EQ(schedule.plan.rows[0].position, 512);
  EXPECT_EQ(schedule.plan.inputs(schedule.plan.rows[0])[0], TokenId{512});
  EXPECT_EQ(schedule.plan.rows[0].block_count, 19);
}

TEST(Planner, AShortPromptPassesALongOneWhichKeepsHalf) {
  Rows rows;
  rows.add(6000);
  rows.add(5000);
  rows.add(60);
  const Schedule schedule = rows.plan();
  EXPECT_EQ(schedule.shares, (std::vector<Share>{{0, 256}, {1, 192}, {2, 60}}));
}

TEST(Planner, EqualShortPromptsGoInOrderOfArrival) {
  Rows rows;
  for (int index = 0; index < 8; ++index) rows.add(75);
  EXPECT_EQ(rows.plan().shares, (std::vector<Share>{{0, 75}, {1, 75}, {2, 75}, {3, 75}, {4, 75}, {5, 75}, {6, 32}}));
}

TEST(Planner, RowsThatWaitedLongestGoFirst) {
  Rows rows;
  rows.add(3, 0, 1, 9);
  rows.add(3, 0, 1, 4);
  rows.add(3, 0, 1, 7);
  rows.add(40);
  PlannerLimits two = limits();
  two.rows_max = 2;
  const Schedule schedule = rows.plan(two);
  ASSERT_EQ(schedule.shares.size(), 2U);
  EXPECT_EQ(schedule.shares[0].index, 1U);
  EXPECT_EQ(schedule.shares[1].index, 3U);
}

// Every schedule of random rows keeps the rules, and running them to their end never stalls.
TEST(Planner, RandomLoadsKeepTheRules) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    PlannerLimits with = limits();
    with.rows_max = static_cast<std::int32_t>(1 + rng.below(6));
    with.step_tokens_max = with.rows_max + static_cast<std::int32_t>(rng.below(300));
    with.gap_us = static_cast<double>(rng.below(60000));
    const Planner planner(with);
    Rows rows;
    std::vector<Sequence*> sequences;
    const std::size_t count = 1 + rng.below(10);
    for (std::size_t index = 0; index < count; ++index)
      sequences.push_back(&rows.add(static_cast<std::int32_t>(1 + rng.below(700))));
    Schedule schedule;
    for (std::uint64_t step = 2;; ++step) {
      std::vector<const Sequence*> runnable;
      for (const Sequence* sequence : sequences) {
        if (sequence->generated() < 5) runnable.push_back(sequence);
      }
      planner.plan(runnable, 1, schedule);
      Schedule again;
      planner.plan(runnable, 1, again);
      ASSERT_EQ(schedule.plan, again.plan);
      if (runnable.empty()) break;
      ASSERT_FALSE(schedule.plan.empty()) << "stalled, seed " << seed;
      ASSERT_LT(step, 4000U);
      ASSERT_LE(schedule.plan.rows.size(), static_cast<std::size_t>(with.rows_max));
      ASSERT_LE(schedule.plan.tokens.size(), static_cast<std::size_t>(with.step_tokens_max));
      const bool decodes = std::any_of(schedule.shares.begin(), schedule.shares.end(),
                                       [&](const Share& share) { return runnable[share.index]->decoding(); });
      std::int32_t prefilled = 0;
      for (const Share& share : schedule.shares) prefilled += runnable[share.index]->decoding() ? 0 : share.inputs;
      if (decodes && prefilled > kBlockTokens) {
        ASSERT_LE(schedule.cost_us, with.gap_us);
      }
      if (runnable.size() <= static_cast<std::size_t>(with.rows_max)) {
        for (std::size_t index = 0; index < runnable.size(); ++index) {
          const bool served = std::any_of(schedule.shares.begin(), schedule.shares.end(),
                                          [&](const Share& share) { return share.index == index; });
          ASSERT_TRUE(served || !runnable[index]->decoding()) << "a decode row was left out";
        }
      }
      for (std::size_t row = 0; row < schedule.shares.size(); ++row) {
        const auto& share = schedule.shares[row];
        auto* sequence = const_cast<Sequence*>(runnable[share.index]);
        sequence->advance(share.inputs, step);
        if (schedule.plan.rows[row].samples == 1) sequence->append(TokenId{1});
      }
    }
  }
}

}  // namespace
}  // namespace linnet
