// Faults that users of servers like this one reported, by their numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

FakeExecutorOptions long_context() {
  FakeExecutorOptions fake;
  fake.info.context_max = 100'000;
  fake.info.block_count = 8192;
  fake.info.step_cost_fixed_us = 2000;
  fake.info.step_cost_per_token_us = 180;
  fake.info.step_cost_per_token_context_us = 0.02;
  return fake;
}

// Generation must not go on after the client has gone.
TEST(Case, BL047_WorkStopsWithinOneStepOfTheClientLeaving) {
  EngineRig rig({}, long_context());
  {
    const RequestHandle handle = rig.submit({.prompt = prompt_of(3), .max_tokens = 4096});
    for (int step = 0; step < 5; ++step) rig.engine().step();
  }
  EXPECT_FALSE(rig.engine().step());
  const EngineStats stats = rig.engine().stats();
  EXPECT_EQ(stats.completion_tokens, 5U);
  EXPECT_EQ(stats.rows_running, 0);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.requests_cancelled, 1U);
  EXPECT_FALSE(rig.engine().step());
}

// A long prefill must not freeze running streams, also where steps take longer than the executor promised.
TEST(Case, BL050_ARunningStreamKeepsItsPaceDuringALongPrefill) {
  for (const double cost_ratio : {1.0, 1.3, 3.0}) {
    FakeExecutorOptions fake = long_context();
    fake.cost_ratio = cost_ratio;
    EngineRig rig({.max_gap_ms = 60}, fake);
    // The prefill of the running row itself teaches the engine what steps cost.
    RequestHandle running = rig.submit({.prompt = prompt_of(4000), .max_tokens = 4000});
    Answer running_answer;
    while (running_answer.tokens.empty()) {
      rig.engine().step();
      read_available(running, running_answer);
    }
    RequestHandle arriving = rig.submit({.prompt = prompt_of(60'000), .max_tokens = 1});
    Answer arriving_answer;
    Clock::Duration worst{};
    const Clock::Duration begin = rig.clock().now();
    while (!arriving_answer.finish && !running_answer.finish) {
      const Clock::Duration before = rig.clock().now();
      const std::size_t tokens = running_answer.tokens.size();
      rig.engine().step();
      read_available(running, running_answer);
      read_available(arriving, arriving_answer);
      ASSERT_EQ(running_answer.tokens.size(), tokens + 1) << "one token each step";
      worst = std::max(worst, rig.clock().now() - before);
    }
    const Clock::Duration took = rig.clock().now() - begin;
    ASSERT_TRUE(arriving_answer.finish);
    EXPECT_LE(worst, std::chrono::milliseconds(60)) << cost_ratio;
    // Alone the long prompt would take its tokens' cost; sharing the steps may not double that.
    const double alone_us = cost_ratio * (180.0 * 60'000 + 0.02 * 60'000.0 * 30'000);
    EXPECT_LE(std::chrono::duration<double>(took).count(), 2 * alone_us / 1e6) << cost_ratio;
  }
}

// One seeded request must join the batch, neither emptying it nor waiting for it.
TEST(Case, BL122_ASeededRequestJoinsTheBatch) {
  EngineRig rig;
  std::vector<Request> requests;
  for (std::int32_t index = 0; index < 8; ++index) requests.push_back({.prompt = prompt_of(20, index), .max_tokens = 100});
  requests.push_back({.prompt = prompt_of(20, 8), .sampling = {.seed = 1}, .max_tokens = 100});
  for (std::int32_t index = 9; index < 17; ++index) requests.push_back({.prompt = prompt_of(20, index), .max_tokens = 100});
  std::vector<RequestHandle> handles;
  std::vector<Answer> answers(requests.size());
  std::size_t submitted = 0;
  const auto submit_until = [&](std::size_t count) {
    for (; submitted < count; ++submitted) handles.push_back(rig.submit(requests[submitted]));
  };
  submit_until(8);
  for (int step = 0; step < 10; ++step) rig.engine().step();
  submit_until(9);
  for (int step = 0; step < 2; ++step) rig.engine().step();
  submit_until(17);
  rig.engine().step();
  // From here on every step gives every stream a token, the seeded one among them.
  for (std::size_t index = 0; index < handles.size(); ++index) read_available(handles[index], answers[index]);
  for (int step = 0; step < 50; ++step) {
    rig.engine().step();
    for (std::size_t index = 0; index < handles.size(); ++index) {
      const std::size_t before = answers[index].tokens.size();
      read_available(handles[index], answers[index]);
      ASSERT_EQ(answers[index].tokens.size(), before + 1) << "stream " << index << " stood still";
    }
  }
  rig.run();
  for (std::size_t index = 0; index < handles.size(); ++index) {
    read_available(handles[index], answers[index]);
    EXPECT_EQ(answers[index], lone_answer(requests[index], rig.info())) << index;
  }
}

}  // namespace
}  // namespace linnet
