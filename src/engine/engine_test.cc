#include "linnet/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

// What four requests that join and leave get, and how many steps it takes.
struct Served {
  std::vector<Answer> answers;
  std::uint64_t steps = 0;

  bool operator==(const Served&) const = default;
};

Served serve_four(const FakeExecutorOptions& fake) {
  EngineRig rig({.max_rows = 2}, fake);
  std::vector<RequestHandle> handles;
  for (std::int32_t i = 0; i < 4; ++i) {
    handles.push_back(
        rig.submit({.prompt = prompt_of(30 + 40 * i), .sampling = {.seed = 5, .logprobs = 1}, .max_tokens = 3 + 5 * i}));
  }
  rig.run();
  Served served{.steps = rig.executor().steps()};
  for (RequestHandle& handle : handles) served.answers.push_back(rig.read_all(handle));
  return served;
}

TEST(Engine, TheOverlappedLoopGivesWhatThePlainOneGives) {
  FakeExecutorOptions fake;
  const Served plain = serve_four(fake);
  fake.info.overlaps = true;
  EXPECT_EQ(serve_four(fake), plain);
  EXPECT_TRUE(plain.answers.back().finish);
}

// A step's tokens come while the next one runs; the last step's when nothing is left to run.
TEST(Engine, TheOverlappedLoopHandsOutWhileTheNextStepRuns) {
  FakeExecutorOptions fake;
  fake.info.overlaps = true;
  EngineRig rig({}, fake);
  RequestHandle handle = rig.submit({.prompt = prompt_of(4), .max_tokens = 2, .ignore_eos = true});
  EXPECT_TRUE(rig.engine().step());
  EXPECT_FALSE(handle.try_next());
  EXPECT_TRUE(rig.engine().step());
  EXPECT_TRUE(handle.try_next());
  EXPECT_FALSE(handle.try_next());
  EXPECT_TRUE(rig.engine().step());  // runs nothing
  EXPECT_TRUE(handle.try_next());
  EXPECT_TRUE(handle.try_next());
  EXPECT_FALSE(rig.engine().step());
  EXPECT_EQ(rig.executor().steps(), 2U);
}

TEST(Engine, ALoneRequestGetsItsAnswer) {
  EngineRig rig;
  const Request request{.prompt = prompt_of(1200), .sampling = {.temperature = 0}, .max_tokens = 7};
  RequestHandle handle = rig.submit(request);
  EXPECT_EQ(rig.engine().stats().requests_waiting, 1);
  EXPECT_EQ(rig.read_all(handle), lone_answer(request, rig.info()));
  const EngineStats stats = rig.engine().stats();
  EXPECT_EQ(stats.prompt_tokens, 1200U);
  EXPECT_EQ(stats.completion_tokens, 7U);
  EXPECT_EQ(stats.requests_finished, 1U);
  EXPECT_EQ(stats.kv_blocks_used, 0);
  EXPECT_EQ(stats.kv_blocks_total, 1024);
  EXPECT_EQ(stats.steps, 9U);  // 512 + 512 + 176 and the first token, then six
  EXPECT_FALSE(rig.engine().step());
}

TEST(Engine, RowsTogetherAnswerAsAlone) {
  EngineRig rig;
  std::vector<Request> requests;
  for (std::int32_t index = 0; index < 20; ++index) {
    requests.push_back({.prompt = prompt_of(1 + index * 37, index),
                        .sampling = {.temperature = index % 2 == 0 ? 0.0F : 1.0F, .seed = static_cast<std::uint64_t>(index)},
                        .max_tokens = 5 + index});
  }
  std::vector<RequestHandle> handles;
  for (const Request& request : requests) handles.push_back(rig.submit(request));
  rig.run();
  for (std::size_t index = 0; index < requests.size(); ++index) {
    EXPECT_EQ(rig.read_all(handles[index]), lone_answer(requests[index], rig.info())) << index;
  }
}

TEST(Engine, NoTokensAskedForNoTokensGiven) {
  EngineRig rig;
  RequestHandle handle = rig.submit({.prompt = prompt_of(3), .max_tokens = 0});
  Answer answer;
  read_available(handle, answer);  // without a step
  ASSERT_TRUE(answer.finish);
  EXPECT_EQ(answer.finish->reason, FinishReason::kLength);
  EXPECT_EQ(answer.finish->usage.completion_tokens, 0);
  EXPECT_EQ(answer.finish->usage.prompt_tokens, 3);
  EXPECT_EQ(rig.engine().stats().requests_finished, 1U);
}

TEST(Engine, MaxTokensOneIsOneToken) {
  EngineRig rig;
  RequestHandle handle = rig.submit({.prompt = prompt_of(3), .max_tokens = 1});
  const Answer answer = rig.read_all(handle);
  EXPECT_EQ(answer.tokens.size(), 1U);
  EXPECT_EQ(answer.finish->reason, FinishReason::kLength);
  EXPECT_EQ(answer.finish->usage.completion_tokens, 1);
}

TEST(Engine, EndTokensAreCountedAndNotEmitted) {
  EngineRig rig;
  Request request{.prompt = prompt_of(4), .sampling = {.temperature = 0}, .max_tokens = 10};
  const std::vector<TokenId> free_run = lone_answer(request, rig.info()).tokens;
  for (const std::size_t end : {std::size_t{0}, std::size_t{4}, std::size_t{9}}) {
    if (std::find(free_run.begin(), free_run.begin() + static_cast<std::ptrdiff_t>(end), free_run[end]) !=
        free_run.begin() + static_cast<std::ptrdiff_t>(end)) {
      continue;
    }
    request.end_tokens = {TokenId{999}, free_run[end]};
    RequestHandle handle = rig.submit(request);
    const Answer answer = rig.read_all(handle);
    EXPECT_EQ(answer.finish->reason, FinishReason::kStop) << "also on the last token allowed";
    EXPECT_EQ(answer.tokens.size(), end);
    EXPECT_EQ(answer.finish->usage.completion_tokens, static_cast<std::int32_t>(end) + 1);
    request.ignore_eos = true;
    RequestHandle ignoring = rig.submit(request);
    EXPECT_EQ(rig.read_all(ignoring).tokens, free_run);
    request.ignore_eos = false;
  }
}

TEST(Engine, WithoutMaxTokensTheContextEndsTheAnswer) {
  FakeExecutorOptions fake;
  fake.info.context_max = 50;
  EngineRig rig({}, fake);
  RequestHandle handle = rig.submit({.prompt = prompt_of(10)});
  const Answer answer = rig.read_all(handle);
  EXPECT_EQ(answer.tokens.size(), 40U);
  EXPECT_EQ(answer.finish->reason, FinishReason::kLength);
}

TEST(Engine, APoolSmallerThanTheContextBoundsIt) {
  FakeExecutorOptions fake;
  fake.info.block_count = 2;
  EngineRig rig({}, fake);
  EXPECT_EQ(rig.engine().submit({.prompt = prompt_of(64)}).error().code, ErrorCode::kContextLengthExceeded);
  RequestHandle handle = rig.submit({.prompt = prompt_of(60)});
  EXPECT_EQ(rig.read_all(handle).tokens.size(), 4U);
}

TEST(Engine, RefusesWhatItCannotServe) {
  EngineRig rig({.max_waiting = 2});
  EXPECT_EQ(rig.engine().submit({}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(rig.engine().submit({.prompt = prompt_of(5000)}).error().code, ErrorCode::kContextLengthExceeded);
  RequestHandle first = rig.submit({.prompt = prompt_of(3), .max_tokens = 2});
  RequestHandle second = rig.submit({.prompt = prompt_of(3), .max_tokens = 2});
  EXPECT_EQ(rig.engine().submit({.prompt = prompt_of(3), .max_tokens = 2}).error().code, ErrorCode::kQueueFull);
  rig.run();
  RequestHandle third = rig.submit({.prompt = prompt_of(3), .max_tokens = 2});
  EXPECT_TRUE(rig.read_all(third).finish);
}

TEST(Engine, WaitsForBlocksInOrder) {
  FakeExecutorOptions fake;
  fake.info.block_count = 4;  // 128 tokens
  EngineRig rig({}, fake);
  RequestHandle large = rig.submit({.prompt = prompt_of(50), .max_tokens = 40});
  RequestHandle larger = rig.submit({.prompt = prompt_of(60), .max_tokens = 60});
  RequestHandle small = rig.submit({.prompt = prompt_of(5), .max_tokens = 5});
  rig.engine().step();
  EXPECT_EQ(rig.engine().stats().requests_waiting, 2) << "the small one must not pass the larger one";
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 3);
  for (RequestHandle* handle : {&large, &larger, &small}) EXPECT_EQ(rig.read_all(*handle).finish->reason, FinishReason::kLength);
}

TEST(Engine, HigherPriorityIsAdmittedFirst) {
  EngineRig rig({.max_rows = 1});
  RequestHandle low = rig.submit({.prompt = prompt_of(3), .max_tokens = 1, .priority = 0});
  RequestHandle high = rig.submit({.prompt = prompt_of(3), .max_tokens = 1, .priority = 1});
  rig.engine().step();
  EXPECT_TRUE(high.try_next().has_value());
  EXPECT_FALSE(low.try_next().has_value());
}

TEST(Engine, CancelTakesEffectAtTheNextStepPrefillIncluded) {
  EngineRig rig;
  RequestHandle prefilling = rig.submit({.prompt = prompt_of(2000), .max_tokens = 5});
  rig.engine().step();
  const std::uint64_t computed = rig.executor().tokens_computed();
  EXPECT_EQ(computed, 512U);
  prefilling.cancel();
  prefilling.cancel();
  EXPECT_FALSE(rig.engine().step());
  EXPECT_EQ(rig.executor().tokens_computed(), computed);
  Answer answer;
  read_available(prefilling, answer);
  EXPECT_EQ(answer.finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
  EXPECT_EQ(rig.engine().stats().requests_cancelled, 1U);
}

TEST(Engine, CancelledWhileWaiting) {
  EngineRig rig({.max_rows = 1});
  RequestHandle running = rig.submit({.prompt = prompt_of(3), .max_tokens = 3});
  RequestHandle waiting = rig.submit({.prompt = prompt_of(3), .max_tokens = 3});
  rig.engine().step();
  waiting.cancel();
  rig.engine().step();
  Answer answer;
  read_available(waiting, answer);
  ASSERT_TRUE(answer.finish);
  EXPECT_EQ(answer.finish->reason, FinishReason::kCancelled);
  EXPECT_EQ(rig.engine().stats().requests_waiting, 0);
  EXPECT_EQ(rig.read_all(running).tokens.size(), 3U);
}

TEST(Engine, ASlowReaderPausesItsOwnRowOnly) {
  EngineRig rig({.max_rows = 2, .outbox_events_max = 3});
  const Request request{.prompt = prompt_of(3), .sampling = {.temperature = 0}, .max_tokens = 20};
  RequestHandle slow = rig.submit(request);
  rig.run();
  EXPECT_EQ(rig.engine().stats().completion_tokens, 3U);
  EXPECT_FALSE(rig.engine().step());
  // A paused row leaves its place in the steps to others.
  const Request brief{.prompt = prompt_of(4), .max_tokens = 2};
  RequestHandle first = rig.submit(brief);
  RequestHandle second = rig.submit(brief);
  rig.run();
  EXPECT_EQ(rig.read_all(first), lone_answer(brief, rig.info()));
  EXPECT_EQ(rig.read_all(second), lone_answer(brief, rig.info()));
  EXPECT_EQ(rig.read_all(slow), lone_answer(request, rig.info()));
}

TEST(Engine, AFailedRowEndsAloneAndIsNamed) {
  EngineRig rig;
  const Request request{.prompt = prompt_of(3), .max_tokens = 6};
  rig.executor().fail_row(3);  // the second step's second row
  RequestHandle first = rig.submit(request);
  RequestHandle second = rig.submit(request);
  const Answer good = rig.read_all(first);
  const Answer bad = rig.read_all(second);
  EXPECT_EQ(good, lone_answer(request, rig.info()));
  EXPECT_EQ(bad.finish->reason, FinishReason::kError);
  EXPECT_EQ(bad.tokens.size(), 1U);
  ASSERT_TRUE(bad.finish->error);
  EXPECT_EQ(bad.finish->error->code, ErrorCode::kInternal);
  EXPECT_NE(bad.finish->error->message.find("token 1 of the answer"), std::string::npos);
  EXPECT_EQ(rig.engine().stats().requests_failed, 1U);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
}

TEST(Engine, AFailedStepEndsItsRowsAndTheEngineGoesOn) {
  EngineRig rig({.max_rows = 2});
  const Request request{.prompt = prompt_of(3), .max_tokens = 4};
  rig.executor().fail_collect(1);
  std::vector<RequestHandle> handles;
  for (int index = 0; index < 3; ++index) handles.push_back(rig.submit(request));
  rig.run();
  for (int index = 0; index < 2; ++index) {
    const Answer answer = rig.read_all(handles[static_cast<std::size_t>(index)]);
    EXPECT_EQ(answer.finish->reason, FinishReason::kError);
    EXPECT_EQ(answer.finish->error->message, "step 1 was told to fail");
  }
  EXPECT_EQ(rig.read_all(handles[2]), lone_answer(request, rig.info()));
}

TEST(Engine, EverySequenceIsReleasedOnce) {
  EngineRig rig;
  RequestHandle finishing = rig.submit({.prompt = prompt_of(3), .max_tokens = 2});
  RequestHandle cancelled = rig.submit({.prompt = prompt_of(5), .max_tokens = 20});
  rig.engine().step();
  EXPECT_EQ(rig.executor().released(), 0U);
  rig.engine().step();
  EXPECT_EQ(rig.executor().released(), 1U);  // two tokens are out
  cancelled.cancel();
  rig.run();
  EXPECT_EQ(rig.executor().released(), 2U);
  rig.executor().fail_collect(0);
  RequestHandle failing = rig.submit({.prompt = prompt_of(4), .max_tokens = 3});
  rig.run();
  EXPECT_EQ(rig.executor().released(), 3U);
}

TEST(Engine, LogprobsComeWithTheirTokens) {
  EngineRig rig({.outbox_events_max = 3});
  std::vector<Request> requests;
  for (std::int32_t top = 0; top <= kTopLogprobsMax; top += 5) {
    requests.push_back({.prompt = prompt_of(20, top), .sampling = {.seed = 1, .logprobs = top}, .max_tokens = 12});
  }
  requests.push_back({.prompt = prompt_of(20), .max_tokens = 12});
  std::vector<RequestHandle> handles;
  for (const Request& request : requests) handles.push_back(rig.submit(request));
  for (std::size_t index = 0; index < requests.size(); ++index) {
    EXPECT_EQ(rig.read_all(handles[index]), lone_answer(requests[index], rig.info())) << index;
  }
}

TEST(Engine, ASatisfiedConsumerIsNotACancelledOne) {
  EngineRig rig({.max_rows = 1});
  RequestHandle running = rig.submit({.prompt = prompt_of(3), .max_tokens = 30});
  RequestHandle waiting = rig.submit({.prompt = prompt_of(3), .max_tokens = 30});
  rig.engine().step();
  running.stop();
  running.cancel();  // too late: the first counts
  waiting.stop();
  rig.engine().step();
  for (RequestHandle* handle : {&running, &waiting}) EXPECT_EQ(rig.read_all(*handle).finish->reason, FinishReason::kStop);
  EXPECT_EQ(rig.engine().stats().requests_finished, 2U);
  EXPECT_EQ(rig.engine().stats().requests_cancelled, 0U);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
}

TEST(Engine, ARequestEndsAtItsDeadline) {
  using std::chrono::milliseconds;
  FakeExecutorOptions fake;  // a step takes a millisecond and a bit
  EngineRig rig({.max_rows = 1}, fake);
  RequestHandle running = rig.submit({.prompt = prompt_of(3), .max_tokens = 1000, .time_limit = milliseconds(20)});
  RequestHandle waiting = rig.submit({.prompt = prompt_of(3), .max_tokens = 5, .time_limit = milliseconds(10)});
  RequestHandle patient = rig.submit({.prompt = prompt_of(3), .max_tokens = 5, .time_limit = milliseconds(1000)});
  const Answer late = rig.read_all(running);
  EXPECT_EQ(late.finish->error->code, ErrorCode::kDeadlineExceeded);
  EXPECT_GT(late.tokens.size(), 5U);
  EXPECT_NE(late.finish->error->message.find(" after " + std::to_string(late.tokens.size()) + " tokens"), std::string::npos);
  EXPECT_LE(rig.clock().now(), milliseconds(23)) << "the step under way, and the one that tells it";
  EXPECT_EQ(rig.read_all(waiting).finish->error->code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(rig.read_all(patient).finish->reason, FinishReason::kLength);
  EXPECT_EQ(rig.engine().stats().requests_failed, 2U);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
}

TEST(Engine, StopEndsEveryOpenRequestOnce) {
  EngineRig rig({.max_rows = 1});
  RequestHandle running = rig.submit({.prompt = prompt_of(3), .max_tokens = 30});
  RequestHandle waiting = rig.submit({.prompt = prompt_of(3), .max_tokens = 30});
  rig.engine().step();
  RequestHandle arrived = rig.submit({.prompt = prompt_of(3), .max_tokens = 30});
  rig.engine().stop();
  rig.engine().stop();
  for (RequestHandle* handle : {&running, &waiting, &arrived}) {
    Answer answer;
    read_available(*handle, answer);
    ASSERT_TRUE(answer.finish);
    EXPECT_EQ(answer.finish->reason, FinishReason::kError);
    EXPECT_EQ(answer.finish->error->code, ErrorCode::kUnavailable);
  }
  EXPECT_FALSE(rig.engine().step());
  EXPECT_EQ(rig.engine().submit({.prompt = prompt_of(3)}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(rig.engine().submit({.prompt = prompt_of(3), .max_tokens = 0}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
}

TEST(Engine, AHandleMayOutliveItsEngine) {
  RequestHandle handle;
  {
    EngineRig rig;
    handle = rig.submit({.prompt = prompt_of(3), .max_tokens = 30});
    rig.engine().step();
  }
  Answer answer;
  read_available(handle, answer);
  EXPECT_EQ(answer.finish->error->code, ErrorCode::kUnavailable);
  handle.cancel();
}

}  // namespace
}  // namespace linnet
