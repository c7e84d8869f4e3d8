#include "engine/cache_desk.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

using Entries = std::optional<std::vector<CacheEntry>>;

CacheAnswer into(Entries& entries) {
  return [&entries](std::vector<CacheEntry> found) { entries = std::move(found); };
}

TEST(CacheDesk, ShowsAndForgetsEntriesBetweenSteps) {
  EngineRig rig({.prompt_cache_bytes = kWholeCache});
  for (const std::int32_t first : {1, 2}) {
    RequestHandle handle = rig.submit({.prompt = prompt_of(70, first), .max_tokens = 5});
    rig.read_all(handle);
  }
  Entries entries;
  rig.engine().ask_cache({}, into(entries));
  EXPECT_FALSE(entries);
  rig.engine().step();
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ(entries->front().tokens, 74);
  EXPECT_EQ(entries->front().bytes, 3U * 4096);
  EXPECT_EQ(entries->front().own_bytes, 3U * 4096);
  EXPECT_EQ(entries->front().name_space, entries->back().name_space);

  const std::uint64_t id = entries->front().id;
  rig.engine().ask_cache({.id = id, .forget = true}, into(entries));
  rig.engine().step();
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_EQ(entries->front().id, id);
  rig.engine().ask_cache({.id = id, .forget = true}, into(entries));
  rig.engine().step();
  EXPECT_TRUE(entries->empty());
  EXPECT_EQ(rig.engine().stats().cache_blocks, 3);
  rig.engine().ask_cache({.forget = true}, into(entries));
  rig.engine().step();
  EXPECT_EQ(entries->size(), 1U);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
}

TEST(CacheDesk, WhatARunningSequenceHoldsIsForgottenAndStays) {
  EngineRig rig({.prompt_cache_bytes = kWholeCache});
  const Request request{.prompt = prompt_of(70), .max_tokens = 40};
  RequestHandle first = rig.submit(request);
  const Answer answer = rig.read_all(first);
  RequestHandle second = rig.submit(request);
  rig.engine().step();
  Entries entries;
  rig.engine().ask_cache({.forget = true}, into(entries));
  rig.engine().step();
  EXPECT_EQ(rig.read_all(second).tokens, answer.tokens);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, rig.engine().stats().cache_blocks);
}

TEST(CacheDesk, WakesASleepingEngineAndAnswersAfterItStopped) {
  SystemClock clock;
  Engine engine({}, std::make_unique<FakeExecutor>(FakeExecutorOptions{}), clock);
  engine.start();
  std::promise<std::size_t> answered;
  engine.ask_cache({}, [&](std::vector<CacheEntry> found) { answered.set_value(found.size()); });
  EXPECT_EQ(answered.get_future().get(), 0U);
  engine.stop();
  Entries entries;
  engine.ask_cache({}, into(entries));
  EXPECT_TRUE(entries && entries->empty());
}

}  // namespace
}  // namespace linnet
