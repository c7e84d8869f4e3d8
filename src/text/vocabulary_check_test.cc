#include "text/vocabulary_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "text/test_vocabularies.h"
#include "text/tokenizer.h"

namespace linnet {
namespace {

// BL-112 and its kin: everything that doesn't fit is refused by the field's name.
TEST(VocabularyCheck, NamesTheField) {
  const struct {
    const char* what;
    bool sentence_piece;
    std::function<void(Vocabulary&)> breaks;
    ErrorCode code;
    const char* field;
  } cases[] = {
      {"no tokens", false, [](Vocabulary& v) { v.tokens.clear(); }, ErrorCode::kCorrupt, "tokenizer.ggml.tokens"},
      {"too long", false, [](Vocabulary& v) { v.tokens[7] = std::string(5000, 'x'); }, ErrorCode::kTooLarge,
       "tokenizer.ggml.tokens"},
      {"not UTF-8", false, [](Vocabulary& v) { v.tokens[7] = std::string("\xff"); }, ErrorCode::kCorrupt,
       "tokenizer.ggml.tokens[7]"},
      {"few types", false, [](Vocabulary& v) { v.types.pop_back(); }, ErrorCode::kCorrupt, "tokenizer.ggml.token_type"},
      {"type 0", false, [](Vocabulary& v) { v.types[3] = TokenType{0}; }, ErrorCode::kCorrupt, "tokenizer.ggml.token_type"},
      {"type 7", false, [](Vocabulary& v) { v.types[3] = TokenType{7}; }, ErrorCode::kCorrupt, "tokenizer.ggml.token_type"},
      {"few scores", true, [](Vocabulary& v) { v.scores.pop_back(); }, ErrorCode::kCorrupt, "tokenizer.ggml.scores"},
      {"no scores", true, [](Vocabulary& v) { v.scores.clear(); }, ErrorCode::kCorrupt, "tokenizer.ggml.scores"},
      {"bos", false, [](Vocabulary& v) { v.bos = TokenId{100000}; }, ErrorCode::kCorrupt, "tokenizer.ggml.bos_token_id"},
      {"eos", false, [](Vocabulary& v) { v.eos = TokenId{-1}; }, ErrorCode::kCorrupt, "tokenizer.ggml.eos_token_id"},
      {"unk", true, [](Vocabulary& v) { v.unk = TokenId{1 << 30}; }, ErrorCode::kCorrupt, "tokenizer.ggml.unknown_token_id"},
      {"pad", true, [](Vocabulary& v) { v.pad = TokenId{100000}; }, ErrorCode::kCorrupt, "tokenizer.ggml.padding_token_id"},
      {"no merges", false, [](Vocabulary& v) { v.merges.clear(); }, ErrorCode::kCorrupt, "tokenizer.ggml.merges"},
      {"no space", false, [](Vocabulary& v) { v.merges[1] = std::string("ll"); }, ErrorCode::kCorrupt,
       "tokenizer.ggml.merges[1]"},
      {"empty", false, [](Vocabulary& v) { v.merges[1] = std::string(""); }, ErrorCode::kCorrupt, "tokenizer.ggml.merges[1]"},
      {"only space", false, [](Vocabulary& v) { v.merges[1] = std::string(" "); }, ErrorCode::kCorrupt,
       "tokenizer.ggml.merges[1]"},
      {"no right", false, [](Vocabulary& v) { v.merges[1] = std::string("l "); }, ErrorCode::kCorrupt,
       "tokenizer.ggml.merges[1]"},
      {"unknown part", false, [](Vocabulary& v) { v.merges[1] = std::string("l nope"); }, ErrorCode::kCorrupt,
       "tokenizer.ggml.merges[1]"},
      {"unknown result", false, [](Vocabulary& v) { v.merges[1] = std::string("l x"); }, ErrorCode::kCorrupt,
       "tokenizer.ggml.merges[1]"},
      {"merge not UTF-8", false, [](Vocabulary& v) { v.merges[1] = std::string("l \xff"); }, ErrorCode::kCorrupt,
       "tokenizer.ggml.merges[1]"},
      {"pre", false, [](Vocabulary& v) { v.pre_tokenizer = std::string("no-such"); }, ErrorCode::kUnsupported, "no-such"},
      {"pre not UTF-8", false, [](Vocabulary& v) { v.pre_tokenizer = std::string("\xff"); }, ErrorCode::kCorrupt,
       "tokenizer.ggml.pre"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    Vocabulary vocabulary = one.sentence_piece ? test::sentence_piece_vocabulary() : test::byte_level_vocabulary();
    one.breaks(vocabulary);
    const auto tokenizer = Tokenizer::from_vocabulary(vocabulary);
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_EQ(tokenizer.error().code, one.code);
    EXPECT_NE(tokenizer.error().message.find(one.field), std::string::npos) << tokenizer.error().message;
  }
}

TEST(VocabularyCheck, UnknownPreTokenizerNamesTheKnownOnes) {
  Vocabulary vocabulary = test::byte_level_vocabulary();
  vocabulary.pre_tokenizer = std::string("klingon");
  const auto tokenizer = Tokenizer::from_vocabulary(vocabulary);
  ASSERT_FALSE(tokenizer.ok());
  for (const char* name : {"klingon", "llama-bpe", "smollm", "qwen2", "gpt-2"}) {
    EXPECT_NE(tokenizer.error().message.find(name), std::string::npos) << tokenizer.error().message;
  }
}

TEST(VocabularyCheck, OddButValidIsTaken) {
  Vocabulary vocabulary = test::sentence_piece_vocabulary();
  vocabulary.scores[265] = std::numeric_limits<float>::quiet_NaN();
  vocabulary.scores[266] = -std::numeric_limits<float>::infinity();
  vocabulary.tokens[270] = vocabulary.tokens[271];  // a name twice
  vocabulary.tokens[272].clear();
  EXPECT_TRUE(Tokenizer::from_vocabulary(vocabulary).ok());
  Vocabulary untyped = test::byte_level_vocabulary();
  untyped.types.clear();
  EXPECT_TRUE(Tokenizer::from_vocabulary(untyped).ok());
}

}  // namespace
}  // namespace linnet
