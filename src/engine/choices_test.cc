// Several answers to one prompt, which is computed once.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

std::vector<Answer> read_all(EngineRig& rig, std::vector<RequestHandle>& handles) {
  std::vector<Answer> answers;
  for (RequestHandle& handle : handles) answers.push_back(rig.read_all(handle));
  return answers;
}

TEST(Choices, EachAnswersAsALoneRequestWithItsSeedAndThePromptIsComputedOnce) {
  for (const std::int32_t prompt : {1, 2, 31, 32, 33, 64, 65, 1300}) {
    EngineRig rig;
    const Request request{.prompt = prompt_of(prompt), .sampling = {.seed = 7, .logprobs = 2}, .max_tokens = 40, .choices = 5};
    std::vector<RequestHandle> handles = rig.submit_choices(request);
    ASSERT_EQ(handles.size(), 5U);
    const std::vector<Answer> answers = read_all(rig, handles);
    for (std::int32_t choice = 0; choice < 5; ++choice) {
      EXPECT_EQ(answers[static_cast<std::size_t>(choice)], lone_answer(request, rig.info(), choice)) << prompt << " " << choice;
    }
    EXPECT_NE(answers[0].tokens, answers[1].tokens);
    Request alone = request;
    alone.choices = 1;
    RequestHandle lone = rig.submit(alone);
    EXPECT_EQ(rig.read_all(lone), answers[0]) << "the first is what a lone request gets";
    // Prompt, four last tokens of it, five answers but for their last tokens; then the lone request.
    EXPECT_EQ(rig.executor().tokens_computed(), static_cast<std::uint64_t>(prompt + 4 + 5 * 39 + prompt + 39));
    EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
    EXPECT_EQ(rig.engine().stats().requests_finished, 2U);
  }
}

TEST(Choices, WholeBlocksOfThePromptAreShared) {
  EngineRig rig;
  std::vector<RequestHandle> handles = rig.submit_choices({.prompt = prompt_of(320), .max_tokens = 10, .choices = 4});
  rig.engine().step();
  // 9 blocks hold the first 288 tokens; each sequence has two of its own.
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 9 + 4 * 2);
  EXPECT_EQ(rig.engine().stats().rows_running, 4);
}

// The first answer's end must not take the prompt from those that wait for it.
TEST(Choices, TheFirstMayEndWithItsFirstToken) {
  EngineRig rig;
  Request request{.prompt = prompt_of(70), .sampling = {.seed = 3}, .max_tokens = 20, .choices = 3};
  request.end_tokens = {lone_answer(request, rig.info()).tokens[0]};
  std::vector<RequestHandle> handles = rig.submit_choices(request);
  const std::vector<Answer> answers = read_all(rig, handles);
  EXPECT_TRUE(answers[0].tokens.empty());
  for (std::int32_t choice = 0; choice < 3; ++choice) {
    EXPECT_EQ(answers[static_cast<std::size_t>(choice)], lone_answer(request, rig.info(), choice)) << choice;
  }
  EXPECT_EQ(rig.executor().released(), 3U);
}

// Whoever computes the prompt leaves before it is done: another one begins anew.
TEST(Choices, AnotherOneComputesThePromptIfTheFirstLeaves) {
  for (const bool waiting : {true, false}) {
    EngineRig rig;
    const Request request{.prompt = prompt_of(1500), .sampling = {.seed = 3}, .max_tokens = 20, .choices = 3};
    std::vector<RequestHandle> handles = rig.submit_choices(request);
    if (!waiting) rig.engine().step();
    handles[0].cancel();
    rig.engine().step();
    EXPECT_EQ(rig.read_all(handles[0]).finish->reason, FinishReason::kCancelled);
    const Answer second = rig.read_all(handles[1]);
    EXPECT_EQ(second.tokens, lone_answer(request, rig.info(), 1).tokens);
    EXPECT_EQ(second.finish->usage.cached_tokens, 0);
    EXPECT_EQ(rig.read_all(handles[2]), lone_answer(request, rig.info(), 2));
    EXPECT_EQ(rig.engine().stats().requests_cancelled, 1U);
    EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
  }
}

TEST(Choices, AFailedStepEndsThoseThatWereToBegin) {
  EngineRig rig({.max_rows = 2});
  std::vector<RequestHandle> handles = rig.submit_choices({.prompt = prompt_of(40), .max_tokens = 20, .choices = 5});
  rig.engine().step();
  rig.executor().fail_collect(0);  // two of the four rows of this step are in it, all four clones
  rig.run();
  EXPECT_EQ(rig.read_all(handles[0]).finish->reason, FinishReason::kLength) << "it waited for a row";
  for (std::size_t choice = 1; choice < 5; ++choice) {
    EXPECT_EQ(rig.read_all(handles[choice]).finish->reason, FinishReason::kError) << choice;
  }
  EXPECT_EQ(rig.engine().stats().requests_failed, 1U);
  EXPECT_EQ(rig.engine().stats().kv_blocks_used, 0);
}

TEST(Choices, WithoutMaxTokensTheyShareTheRoomThereIs) {
  FakeExecutorOptions fake;
  fake.info.block_count = 12;
  EngineRig rig({}, fake);
  const Request request{.prompt = prompt_of(65), .choices = 3};
  std::vector<RequestHandle> handles = rig.submit_choices(request);
  const std::vector<Answer> answers = read_all(rig, handles);
  // Two blocks are shared, (12 - 2) / 3 = 3 are each one's own: 5 * 32 tokens.
  for (const Answer& answer : answers) EXPECT_EQ(answer.tokens.size(), 5U * 32 - 65);
}

TEST(Choices, RefusesWhatNeverFits) {
  FakeExecutorOptions fake;
  fake.info.block_count = 4;
  EngineRig rig({.max_rows = 2}, fake);
  EXPECT_EQ(rig.engine().submit_choices({.prompt = prompt_of(3), .choices = 0}).error().param, "n");
  EXPECT_EQ(rig.engine().submit_choices({.prompt = prompt_of(3), .choices = 9}).error().param, "n");
  EXPECT_EQ(rig.engine().submit_choices({.prompt = prompt_of(40), .choices = 4}).error().code, ErrorCode::kContextLengthExceeded);
  EXPECT_EQ(rig.engine().submit({.prompt = prompt_of(3), .choices = 2}).error().code, ErrorCode::kInvalidArgument);
  std::vector<RequestHandle> handles = rig.submit_choices({.prompt = prompt_of(3), .max_tokens = 0, .choices = 2});
  EXPECT_EQ(rig.read_all(handles[1]).finish->reason, FinishReason::kLength);
}

}  // namespace
}  // namespace linnet
