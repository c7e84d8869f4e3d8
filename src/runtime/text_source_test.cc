// Text out of an engine whose model is a script: deltas, stop strings, usage.
#include "runtime/text_source.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "engine/fake_executor.h"
#include "linnet/engine.h"
#include "runtime/byte_tokenizer.h"

namespace linnet {
namespace {

struct Outcome {
  std::vector<std::string> deltas;                      // of the content
  std::vector<std::vector<std::string>> logprob_bytes;  // of each delta
  std::string text;                                     // they together
  std::string reasoning;
  FinishEvent finish;
};

const ReasoningMarkers kThink{.begin = "<think>", .end = "</think>"};

// The engine plays `script` back, then end tokens. `pipeline` gets the tokenizer.
Outcome play(const std::string& script, TextPipeline pipeline, std::int32_t max_tokens,
             std::optional<std::int32_t> logprobs = std::nullopt) {
  VirtualClock clock;
  FakeExecutorOptions options;
  options.next_token = [&script](std::span<const TokenId>, const SamplingParams&, std::uint64_t step) {
    return step < script.size() ? static_cast<TokenId>(static_cast<unsigned char>(script[step])) : TokenId{256};
  };
  Engine engine({}, std::make_unique<FakeExecutor>(options), clock);
  Result<RequestHandle> handle = engine.submit({.prompt = {TokenId{1}, TokenId{2}},
                                                .sampling = {.logprobs = logprobs},
                                                .max_tokens = max_tokens,
                                                .end_tokens = {TokenId{256}}});
  EXPECT_TRUE(handle.ok());
  RequestTextSource source(*std::move(handle), std::move(pipeline), 2);
  Outcome outcome;
  for (;;) {
    const bool ran = engine.step();
    while (const std::optional<TextEvent> event = source.try_next()) {
      if (const auto* finish = std::get_if<FinishEvent>(&*event)) {
        outcome.finish = *finish;
        EXPECT_FALSE(source.try_next().has_value());
        return outcome;
      }
      const auto& delta = std::get<TextDelta>(*event);
      outcome.logprob_bytes.emplace_back();
      for (const TextLogprobs& entry : delta.logprobs) {
        outcome.logprob_bytes.back().push_back(entry.token.bytes);
        EXPECT_EQ(entry.top.size(), static_cast<std::size_t>(*logprobs));
      }
      if (delta.channel == TextChannel::kReasoning) {
        outcome.reasoning += delta.text;
      } else {
        outcome.deltas.push_back(delta.text);
        outcome.text += delta.text;
      }
    }
    if (!ran) {
      ADD_FAILURE() << "the engine is idle and the answer not finished";
      return outcome;
    }
  }
}

Outcome play(const std::string& script, std::vector<std::string> stop, std::int32_t max_tokens) {
  return play(script, TextPipeline{.tokenizer = byte_tokenizer(), .stop = std::move(stop)}, max_tokens);
}

Outcome play_reasoning(const std::string& script, std::vector<std::string> stop, std::int32_t max_tokens,
                       ReasoningSplitter::Start start = ReasoningSplitter::Start::kBefore) {
  return play(script, TextPipeline{.tokenizer = byte_tokenizer(), .stop = std::move(stop), .reasoning = kThink, .start = start},
              max_tokens);
}

TEST(TextSource, TextComesAsItIsKnown) {
  const Outcome outcome = play("abc", {}, 100);
  EXPECT_EQ(outcome.deltas, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(outcome.finish.reason, FinishReason::kStop);
  EXPECT_EQ(outcome.finish.usage.completion_tokens, 4);  // the end token is counted
  EXPECT_EQ(outcome.finish.usage.prompt_tokens, 2);
}

TEST(TextSource, CharactersComeWhole) {
  const Outcome outcome = play("h\xF0\x9F\x98\x80!", {}, 100);
  EXPECT_EQ(outcome.deltas, (std::vector<std::string>{"h", "\xF0\x9F\x98\x80", "!"}));
}

TEST(TextSource, CutInsideACharacterGivesOneReplacement) {
  const Outcome outcome = play("h\xF0\x9F\x98\x80", {}, 3);
  EXPECT_EQ(outcome.text, "h\xEF\xBF\xBD");
  EXPECT_EQ(outcome.finish.reason, FinishReason::kLength);
}

TEST(TextSource, StopStringEndsTheAnswerBeforeItself) {
  const Outcome outcome = play("alpha beta gamma delta", {"beta gamma"}, 100);
  EXPECT_EQ(outcome.text, "alpha ");
  EXPECT_EQ(outcome.finish.reason, FinishReason::kStop);
  EXPECT_EQ(outcome.finish.usage.completion_tokens, 16);  // up to the token that completed it
}

TEST(TextSource, HeldBackTextIsReleasedAtTheEnd) {
  const Outcome outcome = play("the quick br", {"brown"}, 100);
  EXPECT_EQ(outcome.text, "the quick br");
  EXPECT_EQ(outcome.deltas.back(), "br");
}

TEST(TextSource, StopStringAtOnceGivesNoText) {
  const Outcome outcome = play("xyz", {"x"}, 100);
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(outcome.finish.reason, FinishReason::kStop);
  EXPECT_EQ(outcome.finish.usage.completion_tokens, 1);
}

TEST(TextSource, TheStopStringIsNamed) {
  EXPECT_EQ(play("alpha beta", {"x", "be"}, 100).finish.stop_string, "be");
  EXPECT_EQ(play("alpha", {"x"}, 100).finish.stop_string, "");
}

TEST(Case, BL004_AStopStringOverSeveralTokens) {
  const Outcome outcome = play("alpha beta gamma delta", {"beta gamma"}, 100);
  EXPECT_EQ(outcome.text, "alpha ");
  EXPECT_EQ(outcome.finish.reason, FinishReason::kStop);
}

TEST(Case, BL005_NoPartOfAStopStringLeaks) {
  EXPECT_EQ(play("The quick brown fox", {"own fox"}, 100).text, "The quick br");
  EXPECT_EQ(play("The quick brown f", {"own fox"}, 100).text, "The quick brown f");
}

TEST(Case, BL007_StopStringsDoNotMoveTheReasoning) {
  const std::string script = "<think>a b,c </think>d b,c e";
  for (const char* stop : {"b,c", "</think>", "think", "k>d", "a very long stop string that holds much back </think>d b,c f"}) {
    EXPECT_EQ(play_reasoning(script, {stop}, 100).reasoning, "a b,c") << stop;
  }
  const Outcome outcome = play_reasoning(script, {"b,c"}, 100);
  EXPECT_EQ(outcome.text, "d ");
  EXPECT_EQ(outcome.finish.reason, FinishReason::kStop);
}

TEST(Case, BL040_ABudgetSpentInsideReasoning) {
  const Outcome outcome = play_reasoning("<think>a long thought", {}, 12);
  EXPECT_EQ(outcome.reasoning, "a lon");
  EXPECT_EQ(outcome.text, "");
  EXPECT_EQ(outcome.finish.reason, FinishReason::kLength);
  EXPECT_EQ(outcome.finish.usage.completion_tokens, 12);
  EXPECT_EQ(outcome.finish.usage.reasoning_tokens, 12);
}

TEST(Case, BL080_ATemplateThatOpensTheReasoning) {
  const Outcome outcome = play_reasoning("internal reasoning\n</think>answer", {}, 100, ReasoningSplitter::Start::kInside);
  EXPECT_EQ(outcome.reasoning, "internal reasoning");
  EXPECT_EQ(outcome.text, "answer");
  EXPECT_EQ(outcome.finish.usage.reasoning_tokens, 27);
}

TEST(TextSource, AControlTokenMayBeTheMarker) {
  const TextPipeline pipeline{.tokenizer = byte_tokenizer(), .reasoning = ReasoningMarkers{.begin = "<think>", .end = "<end>"}};
  // The script's end token is the end marker here, and does not end the answer.
  VirtualClock clock;
  FakeExecutorOptions options;
  const std::string script = "<think>ab";
  options.next_token = [&script](std::span<const TokenId>, const SamplingParams&, std::uint64_t step) {
    if (step < script.size()) return static_cast<TokenId>(static_cast<unsigned char>(script[step]));
    return step == script.size() ? TokenId{256} : TokenId{'c'};
  };
  Engine engine({}, std::make_unique<FakeExecutor>(options), clock);
  Result<RequestHandle> handle = engine.submit({.prompt = {TokenId{1}}, .max_tokens = 11});
  ASSERT_TRUE(handle.ok());
  RequestTextSource source(*std::move(handle), pipeline, 1);
  while (engine.step()) {
  }
  std::string reasoning;
  std::string content;
  while (const std::optional<TextEvent> event = source.try_next()) {
    if (const auto* delta = std::get_if<TextDelta>(&*event)) {
      (delta->channel == TextChannel::kReasoning ? reasoning : content) += delta->text;
    }
  }
  EXPECT_EQ(reasoning, "ab");
  EXPECT_EQ(content, "c");
}

TEST(Case, BL001_CharactersOfSeveralTokensComeWhole) {
  const std::string text = "hi\xF0\x9F\x98\x80 \xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E";
  const Outcome outcome = play(text, {}, 100);
  EXPECT_EQ(outcome.text, text);
  EXPECT_EQ(outcome.deltas,
            (std::vector<std::string>{"h", "i", "\xF0\x9F\x98\x80", " ", "\xE6\x97\xA5", "\xE6\x9C\xAC", "\xE8\xAA\x9E"}));
}

TEST(Case, BL002_AnAnswerCutInsideACharacterEndsInOneReplacement) {
  for (std::int32_t max_tokens = 1; max_tokens <= 3; ++max_tokens) {
    const Outcome outcome = play("\xF0\x9F\x98\x80", {}, max_tokens);
    EXPECT_EQ(outcome.text, "\xEF\xBF\xBD") << max_tokens;
    EXPECT_EQ(outcome.finish.reason, FinishReason::kLength);
  }
}

using Bytes = std::vector<std::vector<std::string>>;

Outcome play_logprobs(const std::string& script, std::vector<std::string> stop, std::int32_t top, std::int32_t max_tokens) {
  return play(script, {.tokenizer = byte_tokenizer(), .stop = std::move(stop)}, max_tokens, top);
}

TEST(TextSource, LogprobsOfReasoningComeToo) {
  const Outcome outcome = play("<think>a</think>b", {.tokenizer = byte_tokenizer(), .reasoning = kThink}, 100, 0);
  EXPECT_EQ(outcome.text, "b");
  std::string spelled;
  for (const auto& delta : outcome.logprob_bytes) {
    for (const std::string& bytes : delta) spelled += bytes;
  }
  EXPECT_EQ(spelled, "<think>a</think>b") << "every generated token is covered";
}

TEST(TextSource, LogprobsComeWithTheTextOfTheirTokens) {
  const Outcome outcome = play_logprobs("ab", {}, 2, 100);
  EXPECT_EQ(outcome.deltas, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(outcome.logprob_bytes, (Bytes{{"a"}, {"b"}}));
}

TEST(TextSource, LogprobsOfACharacterOfSeveralTokensComeTogether) {
  EXPECT_EQ(play_logprobs("h\xC3\xA9!", {}, 0, 100).logprob_bytes, (Bytes{{"h"}, {"\xC3", "\xA9"}, {"!"}}));
  const Outcome cut = play_logprobs("h\xC3", {}, 0, 2);
  EXPECT_EQ(cut.deltas, (std::vector<std::string>{"h", "\xEF\xBF\xBD"}));
  EXPECT_EQ(cut.logprob_bytes, (Bytes{{"h"}, {"\xC3"}}));
}

TEST(TextSource, LogprobsOfHeldBackTextWaitWithIt) {
  const Outcome held = play_logprobs("abcx", {"bcd"}, 0, 100);
  EXPECT_EQ(held.deltas, (std::vector<std::string>{"a", "bcx"}));
  EXPECT_EQ(held.logprob_bytes, (Bytes{{"a"}, {"b", "c", "x"}}));
  const Outcome stopped = play_logprobs("abcd", {"bcd"}, 0, 100);
  EXPECT_EQ(stopped.deltas, (std::vector<std::string>{"a"}));
  EXPECT_EQ(stopped.logprob_bytes, (Bytes{{"a"}})) << "a stop string has no logprobs";
}

}  // namespace
}  // namespace linnet
