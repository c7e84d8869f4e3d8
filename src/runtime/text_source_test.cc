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
#include "text/vocabulary.h"

namespace linnet {
namespace {

// One token for each byte, named as byte-level vocabularies name bytes; then an end token.
Tokenizer byte_tokenizer() {
  Vocabulary vocabulary{.kind = VocabularyKind::kByteLevelBpe, .pre_tokenizer = "gpt-2"};
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int code = printable ? byte : next++;
    std::string name;
    if (code < 128) {
      name = static_cast<char>(code);
    } else {
      name = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
    }
    vocabulary.tokens.push_back(name);
    vocabulary.types.push_back(TokenType::kNormal);
  }
  vocabulary.tokens.emplace_back("<end>");
  vocabulary.types.push_back(TokenType::kControl);
  vocabulary.tokens.emplace_back("th");
  vocabulary.types.push_back(TokenType::kNormal);
  vocabulary.merges = {"t h"};
  vocabulary.eos = TokenId{256};
  Result<Tokenizer> tokenizer = Tokenizer::from_vocabulary(vocabulary);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return *std::move(tokenizer);
}

struct Outcome {
  std::vector<std::string> deltas;
  std::string text;
  FinishEvent finish;
};

// The engine plays `script` back, then end tokens.
Outcome play(const std::string& script, std::vector<std::string> stop, std::int32_t max_tokens) {
  VirtualClock clock;
  FakeExecutorOptions options;
  options.next_token = [&script](std::span<const TokenId>, const SamplingParams&, std::uint64_t step) {
    return step < script.size() ? static_cast<TokenId>(static_cast<unsigned char>(script[step])) : TokenId{256};
  };
  Engine engine({}, std::make_unique<FakeExecutor>(options), clock);
  Result<RequestHandle> handle =
      engine.submit({.prompt = {TokenId{1}, TokenId{2}}, .max_tokens = max_tokens, .end_tokens = {TokenId{256}}});
  EXPECT_TRUE(handle.ok());
  RequestTextSource source(*std::move(handle), byte_tokenizer(), std::move(stop), 2);
  Outcome outcome;
  for (;;) {
    const bool ran = engine.step();
    while (const std::optional<TextEvent> event = source.try_next()) {
      if (const auto* finish = std::get_if<FinishEvent>(&*event)) {
        outcome.finish = *finish;
        EXPECT_FALSE(source.try_next().has_value());
        return outcome;
      }
      outcome.deltas.push_back(std::get<TextDelta>(*event).text);
      outcome.text += outcome.deltas.back();
    }
    if (!ran) {
      ADD_FAILURE() << "the engine is idle and the answer not finished";
      return outcome;
    }
  }
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

}  // namespace
}  // namespace linnet
