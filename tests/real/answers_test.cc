// The demo model answers sensibly, and as llama.cpp does on the same file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "demo_model.h"
#include "golden_answers.h"
#include "linnet/text_engine.h"
#include "sequence_driver.h"

namespace linnet {
namespace {

std::string answer(TextEngine& engine, const std::string& messages, std::int32_t max_tokens) {
  TextRequest request{.prompt = ChatPrompt{.messages_json = messages}, .max_tokens = max_tokens};
  request.sampling.temperature = 0.0F;
  Result<TextStream> stream = engine.submit(std::move(request));
  EXPECT_TRUE(stream.ok()) << (stream.ok() ? "" : stream.error().message);
  std::string text;
  for (;;) {
    const TextEvent event = stream->next();
    if (std::holds_alternative<FinishEvent>(event)) return text;
    text += std::get<TextDelta>(event).text;
  }
}

TEST(Answers, TheCapitalOfFranceIsParis) {
  LoadOptions options;
  options.model = demo_model_path();
  const Result<std::unique_ptr<TextEngine>> engine = TextEngine::load(options);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const std::string text = answer(**engine, R"([{"role":"user","content":"What is the capital of France?"}])", 40);
  EXPECT_NE(text.find("Paris"), std::string::npos) << text;
}

struct Reply {
  std::string text;
  FinishReason reason{};
  Usage usage;

  bool operator==(const Reply&) const = default;
};

Reply read(TextStream& stream) {
  Reply reply;
  for (;;) {
    const TextEvent event = stream.next();
    if (const auto* finish = std::get_if<FinishEvent>(&event)) {
      reply.reason = finish->reason;
      reply.usage = finish->usage;
      reply.usage.cached_tokens = 0;  // a matter of what came before, not of the answer
      return reply;
    }
    reply.text += std::get<TextDelta>(event).text;
  }
}

// Requests that differ in everything that a request may say.
std::vector<TextRequest> mixed_requests() {
  std::vector<TextRequest> requests;
  const auto add = [&requests](const std::string& message, SamplingOverrides sampling, std::int32_t max_tokens) -> TextRequest& {
    const std::string messages = R"([{"role":"user","content":")" + message + R"("}])";
    requests.push_back({.prompt = ChatPrompt{.messages_json = messages}, .sampling = sampling, .max_tokens = max_tokens});
    return requests.back();
  };
  std::string long_text;
  for (int i = 0; i < 150; ++i) long_text += "The sea was calm and the ship went on. ";
  add("What is the capital of France?", {.temperature = 0.0F}, 40);
  add("Tell me a joke.", {.temperature = 1.0F, .seed = 1}, 40);
  add("Tell me a joke.", {.temperature = 1.0F, .seed = 2}, 40);
  add("Name three rivers.", {.temperature = 0.7F, .top_p = 0.9F, .seed = 3}, 40);
  add("Name three rivers.", {.temperature = 1.3F, .top_k = 20, .seed = 4}, 40);
  add("Name three rivers.", {.temperature = 1.0F, .min_p = 0.05F, .seed = 5}, 40);
  add(long_text + "What was calm?", {.temperature = 0.0F}, 30);
  add("Count to ten.", {.temperature = 0.0F}, 60).stop = {"5"};
  add("Count to ten.", {.temperature = 0.0F}, 50).ignore_eos = true;
  add("One word, please.", {.temperature = 0.0F}, 1);
  add("No word, please.", {.temperature = 0.0F}, 0);
  return requests;
}

TEST(Answers, TogetherEqualAloneWithMixedSettings) {
  LoadOptions options;
  options.model = demo_model_path();
  const Result<std::unique_ptr<TextEngine>> engine = TextEngine::load(options);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  std::vector<Reply> alone;
  for (const TextRequest& request : mixed_requests()) {
    Result<TextStream> stream = (*engine)->submit(request);
    ASSERT_TRUE(stream.ok()) << stream.error().message;
    alone.push_back(read(*stream));
  }
  EXPECT_NE(alone[1].text, alone[2].text);  // seeds matter
  EXPECT_EQ(alone[9].reason, FinishReason::kLength);
  EXPECT_EQ(alone[10].text, "");
  for (const bool reversed : {false, true}) {
    std::vector<TextRequest> requests = mixed_requests();
    if (reversed) std::reverse(requests.begin(), requests.end());
    std::vector<TextStream> streams;
    for (const TextRequest& request : requests) {
      Result<TextStream> stream = (*engine)->submit(request);
      ASSERT_TRUE(stream.ok()) << stream.error().message;
      streams.push_back(*std::move(stream));
    }
    std::vector<Reply> together;
    for (TextStream& stream : streams) together.push_back(read(stream));
    if (reversed) std::reverse(together.begin(), together.end());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(alone[i].text, together[i].text) << "request " << i;
      EXPECT_TRUE(alone[i] == together[i]) << "request " << i;
    }
  }
}

// llama.cpp's answer is fed as history, so that each of its choices is compared on the same ground. It rounds activations to 8
// bits, which moves logits: where our choice is another one, its own margin must have been within that noise.
TEST(Answers, GreedyChoicesAreThoseOfLlamaCpp) {
  constexpr double kNoise = 0.5;          // nats; 0.29 is the most that was seen to turn a choice
  constexpr double kDifferentMax = 0.04;  // share of tokens; 0.02 was seen
  const std::unique_ptr<cpu::CpuExecutor> executor = load_demo_executor(2);
  SequenceDriver driver(*executor);
  int compared = 0;
  int different = 0;
  float ours_most = 0;     // by how much we prefer our choice where it differs
  double theirs_most = 0;  // by how much llama.cpp prefers its own
  for (const GoldenAnswer& golden : read_golden_answers()) {
    std::vector<DrivenSequence> one{{.prompt_count = static_cast<std::int32_t>(golden.prompt.size()),
                                     .generate = static_cast<std::int32_t>(golden.answer.size())}};
    driver.assign_blocks(one, 1);
    std::vector<std::vector<float>> logits = driver.feed(one[0], golden.prompt, 1);
    for (std::size_t t = 0; t < golden.answer.size(); ++t) {
      const std::vector<float>& row = logits.back();
      const auto best = std::max_element(row.begin(), row.end()) - row.begin();
      ++compared;
      if (static_cast<TokenId>(best) != golden.answer[t]) {
        ++different;
        ours_most = std::max(ours_most, row[static_cast<std::size_t>(best)] - row[index_of(golden.answer[t])]);
        theirs_most = std::max(theirs_most, golden.margins[t]);
        EXPECT_LT(golden.margins[t], kNoise) << golden.text << ", token " << t;
      }
      logits = driver.feed(one[0], {&golden.answer[t], 1}, 1);
    }
  }
  std::printf("compared %d greedy choices with llama.cpp's; %d differ, by at most %.2f nats in our logits and %.2f in its\n",
              compared, different, static_cast<double>(ours_most), theirs_most);
  EXPECT_LT(static_cast<double>(ours_most), kNoise);
  EXPECT_LT(different, kDifferentMax * compared);
}

}  // namespace
}  // namespace linnet
