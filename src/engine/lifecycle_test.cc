// Clauses of the lifecycle that are built, and the prefix cache seen from the engine.
#include "engine/lifecycle.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

constexpr EngineOptions kCached{.prompt_cache_bytes = kWholeCache};

std::vector<TokenId> joined(std::vector<TokenId> tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// What a request gets when `cached` tokens of its prompt are there: the same, and that number.
Answer with_cached(Answer answer, std::int32_t cached) {
  answer.finish->usage.cached_tokens = cached;
  return answer;
}

struct Conversation {
  Request request;
  Answer answer;

  std::vector<TokenId> history() const { return joined(request.prompt, answer.tokens); }
};

Conversation converse(EngineRig& rig, Request request) {
  RequestHandle handle = rig.submit(request);
  Answer answer = rig.read_all(handle);
  return {.request = std::move(request), .answer = std::move(answer)};
}

TEST(Lifecycle, S03_AnAbortedRequestFailsBeforeAnyWork) {
  EngineRig rig(kCached);
  RequestHandle handle = rig.submit({.prompt = prompt_of(100), .max_tokens = 4});
  handle.cancel();
  rig.run();
  EXPECT_EQ(rig.read_all(handle).finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(rig.executor().tokens_computed(), 0U);
  EXPECT_EQ(rig.engine().stats().cache_misses, 0U) << "not even a lookup";
}

TEST(Lifecycle, S08b_TakeGivesTheLongestPrefix) {
  EngineRig rig(kCached);
  const Conversation first = converse(rig, {.prompt = prompt_of(100), .max_tokens = 30});
  EXPECT_EQ(first.answer.finish->usage.cached_tokens, 0);
  for (const std::int32_t count : {1, 31, 32, 33, 63, 64, 65, 100, 128, 129}) {
    Request request{.prompt = first.history(), .max_tokens = 5};
    request.prompt.resize(static_cast<std::size_t>(count));
    request.prompt.push_back(TokenId{999});
    const std::uint64_t before = rig.executor().tokens_computed();
    const Conversation next = converse(rig, request);
    EXPECT_EQ(next.answer, with_cached(lone_answer(request, rig.info()), count));
    EXPECT_EQ(rig.executor().tokens_computed() - before, 1U + 4U) << "nothing that was there was computed";
  }
  EXPECT_EQ(rig.engine().stats().cache_hits, 10U);
  EXPECT_EQ(rig.engine().stats().cache_misses, 1U);
}

TEST(Lifecycle, S08b_TheLastTokenOfAPromptIsAlwaysComputed) {
  EngineRig rig(kCached);
  const Request request{.prompt = prompt_of(96), .max_tokens = 40};
  converse(rig, request);
  EXPECT_EQ(converse(rig, request).answer, with_cached(lone_answer(request, rig.info()), 95));
}

TEST(Lifecycle, S08c_WithoutAMatchASequenceStartsEmpty) {
  EngineRig rig(kCached);
  converse(rig, {.prompt = prompt_of(96), .max_tokens = 4});
  const Request other{.prompt = prompt_of(96, 2), .max_tokens = 4};
  EXPECT_EQ(converse(rig, other).answer, lone_answer(other, rig.info()));
  EXPECT_EQ(rig.engine().stats().cache_misses, 2U);
}

TEST(Lifecycle, S08d_TheLookupIsOneSpanThatCloses) {
  EngineRig rig(kCached);
  converse(rig, {.prompt = prompt_of(96), .max_tokens = 4});
  for (const std::int32_t first : {1, 2}) {
    converse(rig, {.prompt = prompt_of(96, first), .max_tokens = 4, .trace_id = "t"});
    std::vector<TraceSpan> spans;
    const RequestTrace trace = rig.engine().trace("t").value();
    for (const TraceSpan& span : trace.spans) {
      if (span.kind == TraceKind::kCacheLookup) spans.push_back(span);
    }
    ASSERT_EQ(spans.size(), 1U);
    EXPECT_EQ(spans[0].tokens, first == 1 ? 95 : 0);
    EXPECT_GE(spans[0].end_s, spans[0].begin_s);
  }
}

TEST(Lifecycle, S06_AScopeNeverSeedsAnother) {
  EngineRig rig(kCached);
  const Request request{.prompt = prompt_of(96), .max_tokens = 4, .cache_scope = "one"};
  converse(rig, request);
  for (const char* scope : {"", "two", "onee"}) {
    Request other = request;
    other.cache_scope = scope;
    EXPECT_EQ(converse(rig, other).answer, lone_answer(other, rig.info())) << scope;
  }
  EXPECT_EQ(converse(rig, request).answer.finish->usage.cached_tokens, 95);
}

// The last token of an answer was never fed: its KV does not exist.
TEST(Lifecycle, S13c_PutGetsTheTokensWhoseKvExists) {
  EngineRig rig(kCached);
  const Conversation first = converse(rig, {.prompt = prompt_of(60), .max_tokens = 10});
  Request more{.prompt = joined(first.history(), {TokenId{5}, TokenId{6}}), .max_tokens = 4};
  EXPECT_EQ(converse(rig, more).answer, with_cached(lone_answer(more, rig.info()), 69));
}

TEST(Lifecycle, S13a_AStopIsASuccess) {
  EngineRig rig(kCached);
  Request request{.prompt = prompt_of(60), .max_tokens = 100};
  RequestHandle handle = rig.submit(request);
  while (rig.engine().stats().completion_tokens < 10) rig.engine().step();
  handle.stop();
  rig.run();
  request.prompt.resize(50);
  EXPECT_EQ(converse(rig, request).answer.finish->usage.cached_tokens, 49);
}

TEST(Lifecycle, S13d_ABypassedCacheGetsNothingAndGivesNothing) {
  EngineRig rig(kCached);
  const Request request{.prompt = prompt_of(60), .max_tokens = 4, .prompt_cache = false};
  converse(rig, request);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
  Request cached = request;
  cached.prompt_cache = true;
  EXPECT_EQ(converse(rig, cached).answer.finish->usage.cached_tokens, 0);
  EXPECT_EQ(converse(rig, request).answer.finish->usage.cached_tokens, 0);
  EXPECT_EQ(rig.engine().stats().cache_hits + rig.engine().stats().cache_misses, 1U);
}

TEST(Lifecycle, S14a_NothingOfAFailedOrCancelledRunGetsIntoTheCache) {
  for (const bool cancelled : {true, false}) {
    EngineRig rig(kCached);
    RequestHandle handle = rig.submit({.prompt = prompt_of(100), .max_tokens = 100});
    while (rig.engine().stats().completion_tokens < 10) rig.engine().step();
    if (cancelled) {
      handle.cancel();
    } else {
      rig.executor().fail_collect(0);
    }
    rig.run();
    EXPECT_EQ(rig.read_all(handle).finish->reason, cancelled ? FinishReason::kCancelled : FinishReason::kError);
    EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
    EXPECT_EQ(rig.engine().stats().cache_blocks, 0);
  }
}

// One that is over before its first row has nothing of its own, and what it was to copy was perhaps not copied.
TEST(Lifecycle, S14a_NorDoesAnythingOfOneThatNeverRan) {
  EngineRig rig({.max_rows = 1, .prompt_cache_bytes = kWholeCache});
  const Conversation first = converse(rig, {.prompt = prompt_of(40), .max_tokens = 4});
  const std::int32_t cached = rig.engine().stats().cache_blocks;
  std::vector<RequestHandle> handles =
      rig.submit_choices({.prompt = joined(first.history(), prompt_of(30, 9)), .max_tokens = 40, .choices = 3});
  rig.engine().step();
  rig.engine().step();  // the second and the third begin as the first did; only the second finds a row
  handles[0].cancel();
  handles[1].cancel();
  handles[2].stop();
  rig.run();
  EXPECT_EQ(rig.engine().stats().requests_finished, 2U);
  EXPECT_EQ(rig.engine().stats().cache_blocks, cached);
}

TEST(Lifecycle, RunningRequestsEvictBeforeAnythingWaits) {
  FakeExecutorOptions fake;
  fake.info.block_count = 8;
  EngineRig rig(kCached, fake);
  const Conversation first = converse(rig, {.prompt = prompt_of(120), .max_tokens = 60});
  EXPECT_EQ(rig.engine().stats().cache_blocks, 6);
  const Request large{.prompt = prompt_of(200, 3), .max_tokens = 50};
  EXPECT_EQ(converse(rig, large).answer, lone_answer(large, rig.info()));
  EXPECT_GT(rig.engine().stats().cache_blocks_evicted, 0U);
  const Request again{.prompt = first.request.prompt, .max_tokens = 60};
  EXPECT_EQ(converse(rig, again).answer.tokens, first.answer.tokens);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, rig.engine().stats().cache_blocks);
}

// The block to copy from would be the one that is missing: the request begins without it.
TEST(Lifecycle, ARequestForAllBlocksBeginsAlsoWithAPartOfABlockInTheCache) {
  FakeExecutorOptions fake;
  fake.info.block_count = 4;
  EngineRig rig(kCached, fake);
  const Conversation first = converse(rig, {.prompt = prompt_of(40), .max_tokens = 8});
  const Request all{.prompt = joined(first.history(), {TokenId{1}}), .max_tokens = 79};
  const Answer answer = converse(rig, all).answer;
  EXPECT_EQ(answer, with_cached(lone_answer(all, rig.info()), 32));
}

TEST(Lifecycle, TwoThatArriveTogetherComputeTheirCommonBeginningOnce) {
  EngineRig rig(kCached);
  const Request one{.prompt = joined(prompt_of(1000), {TokenId{1}}), .max_tokens = 5};
  const Request two{.prompt = joined(prompt_of(1000), {TokenId{2}, TokenId{3}}), .max_tokens = 6};
  RequestHandle first = rig.submit(one);
  RequestHandle second = rig.submit(two);
  EXPECT_EQ(rig.read_all(first), lone_answer(one, rig.info()));
  EXPECT_EQ(rig.read_all(second), with_cached(lone_answer(two, rig.info()), 1000));
  EXPECT_EQ(rig.executor().tokens_computed(), 1001U + 4 + 2 + 5);
}

// Whoever waits for another one's prompt does without it if that one leaves.
TEST(Lifecycle, AFollowerGoesOnAloneIfItsLeaderLeaves) {
  for (const bool fails : {false, true}) {
    EngineRig rig(kCached);
    const Request request{.prompt = prompt_of(1500), .max_tokens = 5};
    RequestHandle first = rig.submit(request);
    RequestHandle second = rig.submit(request);
    RequestHandle third = rig.submit(request);
    if (fails) rig.executor().fail_collect(0);
    rig.engine().step();
    if (!fails) first.cancel();
    EXPECT_EQ(rig.read_all(second), lone_answer(request, rig.info()));
    EXPECT_EQ(rig.read_all(third), with_cached(lone_answer(request, rig.info()), 1499));
    EXPECT_EQ(rig.engine().stats().kv_blocks_used, rig.engine().stats().cache_blocks);
  }
}

TEST(Lifecycle, SeveralAnswersBeginWithTheCacheAndAFailedStepEndsWhoseBeginningItHad) {
  EngineRig rig(kCached);
  const Conversation first = converse(rig, {.prompt = prompt_of(100), .max_tokens = 3});
  const Request request{
      .prompt = joined(first.history(), prompt_of(50, 4)), .sampling = {.seed = 4}, .max_tokens = 9, .choices = 3};
  std::vector<RequestHandle> handles = rig.submit_choices(request);
  for (std::int32_t choice = 0; choice < 3; ++choice) {
    const Answer expected = lone_answer(request, rig.info(), choice);
    const Answer answer = rig.read_all(handles[static_cast<std::size_t>(choice)]);
    EXPECT_EQ(answer, choice == 0 ? with_cached(expected, 102) : expected);
  }
  std::vector<RequestHandle> again = rig.submit_choices(request);
  again[0].cancel();
  rig.executor().fail_collect(0);
  rig.run();
  EXPECT_EQ(rig.engine().stats().rows_running, 0);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, rig.engine().stats().cache_blocks);
}

}  // namespace
}  // namespace linnet
