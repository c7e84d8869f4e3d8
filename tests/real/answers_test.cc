// The demo model answers sensibly, and as llama.cpp does on the same file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <variant>

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

// llama.cpp's answer is fed as history, so that each of its choices is compared on the same ground. It rounds activations to 8
// bits, which moves logits: where our choice is another one, its own margin must have been within that noise.
TEST(Answers, GreedyChoicesAreThoseOfLlamaCpp) {
  constexpr double kNoise = 1.0;          // largest margin, in nats, at which int8 activations were seen to turn a choice
  constexpr double kDifferentMax = 0.08;  // share of tokens
  const std::unique_ptr<cpu::CpuExecutor> executor = load_demo_executor(2);
  SequenceDriver driver(*executor);
  int compared = 0;
  int different = 0;
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
        EXPECT_LT(golden.margins[t], kNoise) << golden.text << ", token " << t;
      }
      logits = driver.feed(one[0], {&golden.answer[t], 1}, 1);
    }
  }
  std::printf("compared %d greedy choices with llama.cpp's; %d differ, all within its margin\n", compared, different);
  EXPECT_LT(different, kDifferentMax * compared);
}

}  // namespace
}  // namespace linnet
