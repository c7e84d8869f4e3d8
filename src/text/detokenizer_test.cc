#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/test_vocabularies.h"
#include "text/utf8_oracle.h"

namespace linnet {
namespace {

std::string raw_bytes(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  std::string bytes;
  for (const TokenId token : tokens) bytes += tokenizer.token_bytes(token);
  if (tokenizer.strips_leading_space() && bytes.starts_with(' ')) bytes.erase(0, 1);
  return bytes;
}

// BL-001, BL-002: an emoji of four byte tokens comes whole; cut short it is one U+FFFD, and only at the end.
TEST(Detokenizer, EmojiOfByteTokensComesWhole) {
  for (const Tokenizer& tokenizer : {test::byte_level_tokenizer(), test::sentence_piece_tokenizer()}) {
    const auto byte = [](unsigned value) { return static_cast<TokenId>(3 + value); };
    Detokenizer detokenizer(tokenizer);
    EXPECT_EQ(detokenizer.push(byte('h')), "h");
    EXPECT_EQ(detokenizer.push(byte(0xF0)), "");
    EXPECT_EQ(detokenizer.push(byte(0x9F)), "");
    EXPECT_EQ(detokenizer.push(byte(0x98)), "");
    EXPECT_EQ(detokenizer.push(byte(0x80)), "😀");
    EXPECT_EQ(detokenizer.push(byte(0xE6)), "");
    EXPECT_EQ(detokenizer.push(byte(0x97)), "");
    EXPECT_EQ(detokenizer.push(byte(0xA5)), "日");
    EXPECT_EQ(detokenizer.push(byte(0xF0)), "");
    EXPECT_EQ(detokenizer.push(byte(0x9F)), "");
    EXPECT_EQ(detokenizer.finish(), "\uFFFD");
    EXPECT_EQ(detokenizer.finish(), "");
  }
}

TEST(Detokenizer, SkipsOrKeepsSpecialTokens) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  const std::vector<TokenId> tokens = {TokenId{1}, TokenId{3 + 'a'}, TokenId{2}, TokenId{0}};
  EXPECT_EQ(tokenizer.decode(tokens), "a<tool>");
  EXPECT_EQ(tokenizer.decode(tokens, false), "<|start|>a<tool><|end|>");
  Detokenizer kept(tokenizer, SpecialTokens::kKeep);
  EXPECT_EQ(kept.push(TokenId{1}), "<|start|>");
}

TEST(Detokenizer, IdsOutsideTheVocabularyAreNothing) {
  Detokenizer detokenizer(test::byte_level_tokenizer());
  for (const int id : {-1, 1 << 20, -2147483647 - 1, 2147483647}) EXPECT_EQ(detokenizer.push(static_cast<TokenId>(id)), "");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, LeadingSpaceOfSentencePieceIsTakenOffOnce) {
  const Tokenizer tokenizer = test::sentence_piece_tokenizer();
  const TokenId hello = tokenizer.id_of("\u2581hello").value();
  const TokenId space = tokenizer.id_of("\u2581").value();
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.push(TokenId{1}), "");  // BOS is skipped and is no text
  EXPECT_EQ(detokenizer.push(hello), "hello");
  EXPECT_EQ(detokenizer.push(hello), " hello");
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(detokenizer.push(space), "");  // a new text
  EXPECT_EQ(detokenizer.push(space), " ");

  Vocabulary gemma = test::sentence_piece_vocabulary();
  gemma.add_space_prefix = false;
  Detokenizer kept(Tokenizer::from_vocabulary(gemma).value());
  EXPECT_EQ(kept.push(hello), " hello");
}

TEST(Detokenizer, EqualsWholeDecodingUnderEverySplitAndHoldsNoMoreThanNeeded) {
  std::mt19937 random(3);
  for (const Tokenizer& tokenizer : {test::byte_level_tokenizer(), test::sentence_piece_tokenizer()}) {
    const auto size = static_cast<unsigned>(tokenizer.vocabulary_size());
    for (int round = 0; round < 2000; ++round) {
      std::vector<TokenId> tokens;
      std::string text;
      Detokenizer detokenizer(tokenizer);
      for (int i = 0; i < 10; ++i) {
        const auto draw = [&](unsigned below) { return static_cast<unsigned>(random() % below); };
        const unsigned kind = draw(4);
        const unsigned id = kind == 0 ? draw(size) : 3 + (kind == 1 ? 0xC0 + draw(0x40) : 0x80 + draw(0x40));
        tokens.push_back(static_cast<TokenId>(id));
        text += detokenizer.push(tokens.back());
        ASSERT_EQ(text, test::lossy_utf8(test::without_incomplete_tail(raw_bytes(tokenizer, tokens))));
      }
      text += detokenizer.finish();
      ASSERT_EQ(text, tokenizer.decode(tokens));
      ASSERT_EQ(text, test::lossy_utf8(raw_bytes(tokenizer, tokens)));
    }
  }
}

}  // namespace
}  // namespace linnet
