// Sixteen requests with sixteen different settings on the demo model: each answers the same, token for token and logprob for
// logprob, whoever else is being served.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "demo_model.h"
#include "linnet/text_engine.h"

namespace linnet {
namespace {

using Replies = std::vector<TextAnswer>;  // of one request: one for each choice

TextRequest ask(const std::string& message, const SamplingOverrides& sampling, std::int32_t max_tokens) {
  const std::string messages = R"([{"role":"user","content":")" + message + R"("}])";
  return {.prompt = ChatPrompt{.messages_json = messages}, .sampling = sampling, .max_tokens = max_tokens};
}

std::vector<TextRequest> sixteen_requests() {
  std::vector<TextRequest> requests = {
      ask("What is the capital of France?", {.temperature = 0.0F}, 40),
      ask("Tell me a joke.", {.temperature = 1.0F, .seed = 1}, 40),
      ask("Name three rivers.", {.temperature = 0.7F, .top_p = 0.9F, .min_p = 0.02F, .top_k = 40, .seed = 2}, 40),
      ask("Write about the sea.", {.temperature = 0.0F, .repetition_penalty = 1.3F, .repetition_context = 0}, 50),
      ask("Write about the sea.", {.temperature = 0.8F, .seed = 3, .presence_penalty = 1.0F, .frequency_penalty = 0.5F}, 50),
      ask("Count to ten.", {.temperature = 0.0F, .logprobs = 5}, 40),
      ask("Count to ten.", {.temperature = 1.0F, .seed = 4, .frequency_penalty = 0.3F, .frequency_context = 0, .logprobs = 0},
          40),
      ask("Describe a person as JSON.", {.temperature = 0.0F, .logprobs = 1}, 60),
      ask("Yes or no?", {.temperature = 1.0F, .seed = 5}, 20),
      ask("Tell me a story.", {.temperature = 0.9F, .seed = 6, .logprobs = 2}, 40),
      ask("Count to twenty.", {.temperature = 0.0F}, 60),
      ask("One word, please.", {.temperature = 0.0F}, 1),
      ask("No word, please.", {.temperature = 0.0F}, 0),
      ask("What is two plus two?", {.temperature = 0.0F}, 50),
      ask("Say something odd.", {.temperature = 1.2F, .seed = 7, .xtc_probability = 0.5F, .xtc_threshold = 0.1F}, 40),
      ask("Hello!", {.temperature = 0.0F, .min_tokens = 30}, 40),
  };
  requests[7].grammar =
      GrammarSource{GrammarKind::kJsonSchema,
                    R"({"type":"object","properties":{"name":{"type":"string","maxLength":20},"age":{"type":"integer"}},)"
                    R"("required":["name","age"],"additionalProperties":false})"};
  requests[8].grammar = GrammarSource{GrammarKind::kRegex, "(yes|no), because [a-z ]{10,30}\\."};
  requests[9].choices = 2;
  requests[10].stop = {"e"};
  requests[13].ignore_eos = true;
  requests[15].logit_bias = {{.token = TokenId{28}, .bias = 2.5F}, {.token = TokenId{30}, .bias = -100}};
  return requests;
}

// Reads all streams of a request to their ends.
Replies read(std::vector<TextStream>& streams) {
  Replies replies;
  for (TextStream& stream : streams) {
    TextAnswer reply;
    for (;;) {
      TextEvent event = stream.next();
      if (const auto* finish = std::get_if<FinishEvent>(&event)) {
        reply.finish = *finish;
        reply.finish.usage.cached_tokens = 0;  // a matter of what came before, not of the answer
        break;
      }
      auto& delta = std::get<TextDelta>(event);
      reply.content += delta.text;
      reply.logprobs.insert(reply.logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
    }
    replies.push_back(std::move(reply));
  }
  return replies;
}

class Rows : public testing::Test {
 protected:
  void SetUp() override {
    LoadOptions options;
    options.model = demo_model_path();
    Result<std::unique_ptr<TextEngine>> engine = TextEngine::load(options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = *std::move(engine);
    for (const TextRequest& request : sixteen_requests()) {
      std::vector<TextStream> streams = submit(request);
      alone_.push_back(read(streams));
    }
  }

  std::vector<TextStream> submit(const TextRequest& request) {
    Result<std::vector<TextStream>> streams = engine_->submit_choices(request);
    EXPECT_TRUE(streams.ok()) << streams.error().message;
    return *std::move(streams);
  }

  void expect_as_alone(const std::vector<std::size_t>& order, const std::vector<Replies>& together) {
    for (std::size_t place = 0; place < order.size(); ++place) {
      const std::size_t index = order[place];
      ASSERT_EQ(together[place].size(), alone_[index].size());
      for (std::size_t choice = 0; choice < alone_[index].size(); ++choice) {
        EXPECT_EQ(together[place][choice].content, alone_[index][choice].content) << "request " << index;
        EXPECT_TRUE(together[place][choice] == alone_[index][choice]) << "request " << index << " choice " << choice;
      }
    }
  }

  std::unique_ptr<TextEngine> engine_;
  std::vector<Replies> alone_;
};

TEST_F(Rows, AnswerTheSameAloneTogetherAndInAnyOrder) {
  std::vector<std::size_t> order(alone_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  for (int round = 0; round < 3; ++round) {
    const std::vector<TextRequest> requests = sixteen_requests();
    std::vector<std::vector<TextStream>> streams;
    for (const std::size_t index : order) streams.push_back(submit(requests[index]));
    std::vector<Replies> together;
    for (auto& choices : streams) together.push_back(read(choices));
    expect_as_alone(order, together);
    std::shuffle(order.begin(), order.end(), random);
  }
}

// Every third one leaves after its first text, before or while the others are being answered.
TEST_F(Rows, AnswerTheSameWhenNeighboursAreCancelledMidway) {
  const std::vector<TextRequest> requests = sixteen_requests();
  std::vector<std::size_t> order;
  std::vector<std::vector<TextStream>> staying;
  std::vector<std::vector<TextStream>> leaving;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    if (index % 3 == 0) leaving.push_back(submit(requests[index]));
    staying.push_back(submit(requests[index]));
    order.push_back(index);
  }
  for (auto& streams : leaving) {
    (void)streams.front().next();
    streams.clear();
  }
  std::vector<Replies> together;
  for (auto& choices : staying) together.push_back(read(choices));
  expect_as_alone(order, together);
}

// The settings do what they say.
TEST_F(Rows, SettingsAct) {
  EXPECT_NE(alone_[3][0].content, alone_[4][0].content);
  ASSERT_EQ(alone_[5][0].logprobs.size(), static_cast<std::size_t>(alone_[5][0].finish.usage.completion_tokens) -
                                              (alone_[5][0].finish.reason == FinishReason::kStop ? 1U : 0U));
  std::string spelled;
  for (const TextLogprobs& entry : alone_[5][0].logprobs) {
    ASSERT_EQ(entry.top.size(), 5U);
    EXPECT_EQ(entry.top[0], entry.token) << "greedy takes the most likely";
    EXPECT_LE(entry.token.logprob, 0);
    spelled += entry.token.bytes;
  }
  EXPECT_EQ(spelled, alone_[5][0].content);
  EXPECT_EQ(alone_[7][0].content.front(), '{');
  EXPECT_TRUE(alone_[8][0].content.starts_with("yes, because ") || alone_[8][0].content.starts_with("no, because "))
      << alone_[8][0].content;
  ASSERT_EQ(alone_[9].size(), 2U);
  EXPECT_NE(alone_[9][0].content, alone_[9][1].content);
  EXPECT_EQ(alone_[10][0].content.find('e'), std::string::npos);
  EXPECT_EQ(alone_[10][0].finish.reason, FinishReason::kStop);
  EXPECT_EQ(alone_[11][0].finish.usage.completion_tokens, 1);
  EXPECT_EQ(alone_[12][0].content, "");
  EXPECT_EQ(alone_[12][0].finish.reason, FinishReason::kLength);
  EXPECT_EQ(alone_[13][0].finish.usage.completion_tokens, 50);
  EXPECT_GE(alone_[15][0].finish.usage.completion_tokens, 30);
  EXPECT_EQ(engine_->stats().requests_cancelled, 0U) << "a stop string is no cancellation";
}

}  // namespace
}  // namespace linnet
