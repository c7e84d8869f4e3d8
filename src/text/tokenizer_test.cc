#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "text/test_vocabularies.h"

namespace linnet {
namespace {

std::vector<std::string> names(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options = {}) {
  const auto tokens = tokenizer.encode(text, options);
  if (!tokens.ok()) return {"error: " + tokens.error().message};
  std::vector<std::string> result;
  for (const TokenId token : *tokens) result.emplace_back(tokenizer.token_name(token));
  return result;
}

using Names = std::vector<std::string>;

TEST(Tokenizer, ByteLevelMergesByRankAndCutsDigits) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  EXPECT_EQ(names(tokenizer, "hello world"), (Names{"hello", "Ġworld"}));
  EXPECT_EQ(names(tokenizer, "12"), (Names{"1", "2"}));  // smollm: digits alone, though "12" is a token
  EXPECT_EQ(names(tokenizer, "helloworld"), (Names{"hello", "w", "or", "ld"}));
  EXPECT_EQ(names(tokenizer, ""), Names{});
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("hello 日本 \xF0\x9F\x98\x80\n").value()), "hello 日本 \xF0\x9F\x98\x80\n");
}

TEST(Tokenizer, SpecialTokensInATextAreParsedOnDemandOnly) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  EXPECT_EQ(names(tokenizer, "<|end|>hello"), (Names{"<|end|>", "hello"}));
  const auto as_text = tokenizer.encode("<|end|>hello", {.parse_special = false}).value();
  EXPECT_EQ(as_text.size(), 8U);
  for (const TokenId token : as_text) EXPECT_FALSE(tokenizer.is_special(token));
  EXPECT_EQ(tokenizer.decode(as_text), "<|end|>hello");
  // A user-defined token is no control token: it is always one.
  EXPECT_EQ(names(tokenizer, "<tool>", {.parse_special = false}), (Names{"<tool>"}));
  EXPECT_EQ(tokenizer.token_bytes(TokenId{2}), "<tool>");
  EXPECT_TRUE(tokenizer.is_special(TokenId{0}));
  EXPECT_FALSE(tokenizer.is_special(TokenId{2}));
}

TEST(Tokenizer, BosAndEosAsTheVocabularySays) {
  Vocabulary vocabulary = test::byte_level_vocabulary();
  EXPECT_FALSE(Tokenizer::from_vocabulary(vocabulary)->adds_bos());
  vocabulary.add_bos = true;
  vocabulary.add_eos = true;
  const Tokenizer tokenizer = Tokenizer::from_vocabulary(vocabulary).value();
  EXPECT_TRUE(tokenizer.adds_bos());
  EXPECT_EQ(names(tokenizer, "hello"), (Names{"<|start|>", "hello", "<|end|>"}));
  EXPECT_EQ(names(tokenizer, ""), (Names{"<|start|>", "<|end|>"}));
  EXPECT_EQ(names(tokenizer, "hello", {.add_special = false}), (Names{"hello"}));
  vocabulary.bos.reset();
  vocabulary.add_eos = false;
  EXPECT_FALSE(Tokenizer::from_vocabulary(vocabulary)->adds_bos());
  EXPECT_EQ(names(Tokenizer::from_vocabulary(vocabulary).value(), "hello"), (Names{"hello"}));

  EXPECT_TRUE(test::sentence_piece_tokenizer().adds_bos());
  Vocabulary llama3 = test::byte_level_vocabulary();
  llama3.pre_tokenizer = "llama-bpe";
  EXPECT_TRUE(Tokenizer::from_vocabulary(llama3)->adds_bos());
  llama3.add_bos = false;
  EXPECT_FALSE(Tokenizer::from_vocabulary(llama3)->adds_bos());
}

TEST(Tokenizer, SentencePieceMergesByScoreWithByteFallback) {
  const Tokenizer tokenizer = test::sentence_piece_tokenizer();
  const EncodeOptions bare{.add_special = false};
  EXPECT_EQ(names(tokenizer, "hello world"), (Names{"<s>", "▁hello", "▁world"}));
  EXPECT_EQ(names(tokenizer, "é", bare), (Names{"▁", "<0xC3>", "<0xA9>"}));
  EXPECT_EQ(names(tokenizer, "a  b", bare), (Names{"▁", "a", "▁▁", "b"}));
  EXPECT_EQ(names(tokenizer, "a     b", bare), (Names{"▁", "a", "▁▁▁", "▁▁", "b"}));  // runs grow from the left
  EXPECT_EQ(names(tokenizer, "a\tb", bare), (Names{"▁", "a", "<0x09>", "b"}));
  EXPECT_EQ(names(tokenizer, "<tool call>hello", bare), (Names{"<tool call>", "▁hello"}));
  EXPECT_EQ(names(tokenizer, "</s>hello", bare), (Names{"</s>", "▁hello"}));
  for (const char* text : {"hello world", " two  spaces   three", "é😀\n\t", ""}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text).value()), text);
  }
}

TEST(Tokenizer, SentencePieceWithoutSpacePrefix) {
  Vocabulary vocabulary = test::sentence_piece_vocabulary();
  vocabulary.add_space_prefix = false;
  const Tokenizer tokenizer = Tokenizer::from_vocabulary(vocabulary).value();
  EXPECT_EQ(names(tokenizer, "hello hello"), (Names{"<s>", "hello", "▁hello"}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(" hello").value()), " hello");
  EXPECT_FALSE(tokenizer.strips_leading_space());
}

// BL-089: every token of the alphabet, alone, gives its byte back.
TEST(Tokenizer, TokenBytesOfTheWholeAlphabet) {
  const Tokenizer byte_level = test::byte_level_tokenizer();
  const Tokenizer sentence_piece = test::sentence_piece_tokenizer();
  for (int byte = 0; byte < 256; ++byte) {
    const std::string want(1, static_cast<char>(byte));
    EXPECT_EQ(byte_level.token_bytes(static_cast<TokenId>(3 + byte)), want) << byte;
    EXPECT_EQ(sentence_piece.token_bytes(static_cast<TokenId>(3 + byte)), want) << byte;
  }
  EXPECT_EQ(byte_level.token_bytes(byte_level.id_of("Ġworld").value()), " world");
  EXPECT_EQ(sentence_piece.token_bytes(sentence_piece.id_of("▁world").value()), " world");
  EXPECT_EQ(byte_level.token_bytes(TokenId{0}), "");
}

TEST(Tokenizer, IdsAndNames) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  EXPECT_EQ(tokenizer.bos(), TokenId{1});
  EXPECT_EQ(tokenizer.eos(), TokenId{0});
  EXPECT_EQ(tokenizer.unk(), std::nullopt);
  EXPECT_EQ(tokenizer.pad(), std::nullopt);
  EXPECT_EQ(tokenizer.id_of("<|end|>"), TokenId{0});
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.id_of("\xff"), std::nullopt);
  EXPECT_EQ(tokenizer.vocabulary_size(), 3 + 256 + 11);
  for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
    EXPECT_EQ(tokenizer.id_of(tokenizer.token_name(static_cast<TokenId>(id))), static_cast<TokenId>(id));
  }
  for (const int id : {-1, tokenizer.vocabulary_size(), 2147483647}) {
    EXPECT_EQ(tokenizer.token_name(static_cast<TokenId>(id)), "");
    EXPECT_EQ(tokenizer.token_bytes(static_cast<TokenId>(id)), "");
    EXPECT_FALSE(tokenizer.is_special(static_cast<TokenId>(id)));
  }
}

TEST(Tokenizer, RefusesWhatIsNoUtf8OrTooLong) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  for (const char* text : {"\xff", "a\xC3", "\xED\xA0\x80"}) {
    const auto tokens = tokenizer.encode(text);
    ASSERT_FALSE(tokens.ok());
    EXPECT_EQ(tokens.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(tokenizer.encode(std::string(Tokenizer::kEncodeBytesMax + 1, 'x')).error().code, ErrorCode::kTooLarge);
}

TEST(Tokenizer, LongRunsTakeTimeLinearInTheText) {
  for (const Tokenizer& tokenizer : {test::byte_level_tokenizer(), test::sentence_piece_tokenizer()}) {
    for (const char* unit : {" ", "a", "\n", "1", "é", "he", "<|end|>", "'", " \n"}) {
      std::string text;
      while (text.size() < 200'000) text += unit;
      const auto tokens = tokenizer.encode(text, {.add_special = false, .parse_special = false});
      ASSERT_TRUE(tokens.ok()) << unit;
      EXPECT_EQ(tokenizer.decode(*tokens).size(), text.size()) << unit;
    }
  }
}

// A pre-tokenizer that gives up on a long run would leave what follows in one piece, and merge across its words.
TEST(Tokenizer, PreTokenizingReachesTheEndOfALongRun) {
  Vocabulary vocabulary = test::byte_level_vocabulary();
  vocabulary.tokens.emplace_back("yĠ");
  vocabulary.types.push_back(TokenType::kNormal);
  vocabulary.merges.emplace(vocabulary.merges.begin(), "y Ġ");
  const Tokenizer tokenizer = Tokenizer::from_vocabulary(vocabulary).value();
  const auto tokens = tokenizer.encode("x" + std::string(1'200'000, ' ') + "y hello world12", {.add_special = false}).value();
  Names end;
  for (std::size_t i = tokens.size() - 6; i < tokens.size(); ++i) end.emplace_back(tokenizer.token_name(tokens[i]));
  EXPECT_EQ(end, (Names{"y", "Ġ", "hello", "Ġworld", "1", "2"}));
}

constexpr char kJson[] = R"({
  "version": "1.0", "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}, "padding": null,
  "added_tokens": [
    {"id": 4, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
    {"id": 5, "content": "<tool>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false},
    {"id": 6, "content": "é ", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
  "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "fuse_unk": false, "byte_fallback": false, "vocab": {"a": 0, "b": 1, "ab": 2, "c": 20}, "merges": ["a b"]}})";

TEST(Tokenizer, FromJson) {
  const auto tokenizer =
      Tokenizer::from_json(kJson, R"({"bos_token": {"content": "<s>"}, "eos_token": "<s>", "pad_token": null})");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(names(*tokenizer, "aabab"), (Names{"<s>", "a", "ab", "ab"}));  // truncation is not ours to apply
  EXPECT_EQ(names(*tokenizer, "<s>é <tool>", {.add_special = false}), (Names{"<s>", "é ", "<tool>"}));
  EXPECT_EQ(tokenizer->vocabulary_size(), 21);
  EXPECT_EQ(tokenizer->bos(), TokenId{4});
  EXPECT_EQ(tokenizer->eos(), TokenId{4});
  EXPECT_EQ(tokenizer->pad(), std::nullopt);
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_TRUE(tokenizer->is_special(TokenId{4}));
  EXPECT_EQ(tokenizer->token_bytes(TokenId{6}), "é ");  // an added token is its own text
  EXPECT_EQ(tokenizer->token_bytes(TokenId{12}), "");   // a gap
  EXPECT_TRUE(Tokenizer::from_json(kJson).ok());
}

TEST(Tokenizer, RefusesBrokenJson) {
  const std::string json = kJson;
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = json;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  for (const std::string& broken : {std::string(), std::string("{}"), std::string("[1"), json.substr(0, 900),
                                    with("\"a b\"", "\"a c\""), with("\"a b\"", "\"ab\""), with("\"BPE\"", "\"Nope\""),
                                    with("\"c\": 20", "\"c\": 4000000000"), std::string(200000, '[')}) {
    const auto tokenizer = Tokenizer::from_json(broken);
    ASSERT_FALSE(tokenizer.ok()) << broken.substr(0, 80);
    EXPECT_EQ(tokenizer.error().code, ErrorCode::kCorrupt) << tokenizer.error().message;
    EXPECT_NE(tokenizer.error().message.find("tokenizer.json"), std::string::npos) << tokenizer.error().message;
  }
  for (const char* config : {"{", R"({"bos_token": 5})", R"({"bos_token": "<nope>"})"}) {
    const auto tokenizer = Tokenizer::from_json(json, config);
    ASSERT_FALSE(tokenizer.ok());
    EXPECT_NE(tokenizer.error().message.find("tokenizer_config.json"), std::string::npos) << tokenizer.error().message;
  }
}

TEST(Tokenizer, ManyThreadsEncodeAtOnce) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  const auto want = tokenizer.encode("hello world 日本").value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) EXPECT_EQ(tokenizer.encode("hello world 日本").value(), want);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace linnet
