#include "text/grammar.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "text/test_vocabularies.h"

namespace linnet {
namespace {

bool allows(const std::vector<std::uint32_t>& mask, TokenId token) {
  return (mask[index_of(token) / 32] >> (index_of(token) % 32) & 1U) != 0;
}

std::vector<std::uint32_t> mask_of(Grammar& grammar, const Tokenizer& tokenizer) {
  std::vector<std::uint32_t> words((static_cast<std::size_t>(tokenizer.vocabulary_size()) + 31) / 32 + 1, 0xFFFFFFFFU);
  EXPECT_TRUE(grammar.mask(words).ok());
  EXPECT_EQ(words.back(), 0U) << "words beyond the vocabulary";
  return words;
}

std::set<std::string> allowed(Grammar& grammar, const Tokenizer& tokenizer) {
  const auto mask = mask_of(grammar, tokenizer);
  std::set<std::string> result;
  for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    if (allows(mask, token))
      result.emplace(tokenizer.is_special(token) ? tokenizer.token_name(token) : tokenizer.token_bytes(token));
  }
  return result;
}

void consume_text(Grammar& grammar, const Tokenizer& tokenizer, std::string_view text) {
  for (const char c : text) {
    const Status status = grammar.consume(static_cast<TokenId>(3 + static_cast<unsigned char>(c)));
    ASSERT_TRUE(status.ok()) << c << ": " << status.error().message;
  }
  (void)tokenizer;
}

TEST(Grammar, RegexMaskIsExact) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  auto grammar = Grammar::compile(tokenizer, GrammarKind::kRegex, "hello( world)?");
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_EQ(allowed(*grammar, tokenizer), (std::set<std::string>{"h", "he", "hell", "hello"}));
  EXPECT_FALSE(grammar->accepting().value());
  ASSERT_TRUE(grammar->consume(tokenizer.id_of("hell").value()).ok());
  EXPECT_EQ(allowed(*grammar, tokenizer), (std::set<std::string>{"o"}));
  ASSERT_TRUE(grammar->consume(tokenizer.id_of("o").value()).ok());
  EXPECT_TRUE(grammar->accepting().value());
  EXPECT_EQ(allowed(*grammar, tokenizer), (std::set<std::string>{"<|end|>", " ", " w", " wor", " world"}));
}

TEST(Grammar, WhatDoesNotFitIsRefusedAndChangesNothing) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  auto grammar = Grammar::compile(tokenizer, GrammarKind::kRegex, "ab");
  ASSERT_TRUE(grammar.ok());
  for (const int id : {3 + 'b', 0, 1, 2, -1, 1 << 20}) {
    const Status status = grammar->consume(static_cast<TokenId>(id));
    ASSERT_FALSE(status.ok()) << id;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
  consume_text(*grammar, tokenizer, "ab");
  EXPECT_TRUE(grammar->accepting().value());
}

TEST(Grammar, JsonSchema) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  auto grammar = Grammar::compile(
      tokenizer, GrammarKind::kJsonSchema,
      R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false})");
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  consume_text(*grammar, tokenizer, R"({"a":)");
  EXPECT_FALSE(grammar->accepting().value());
  consume_text(*grammar, tokenizer, "-12}");
  EXPECT_TRUE(grammar->accepting().value());
}

TEST(Grammar, LarkAndForks) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  auto grammar = Grammar::compile(tokenizer, GrammarKind::kLark, "start: \"a\" (\"b\" | \"c\") \"d\"");
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  consume_text(*grammar, tokenizer, "a");
  Grammar other = grammar->fork();
  consume_text(*grammar, tokenizer, "bd");
  EXPECT_EQ(allowed(other, tokenizer), (std::set<std::string>{"b", "c"}));
  consume_text(other, tokenizer, "cd");
  EXPECT_TRUE(other.accepting().value());
  EXPECT_TRUE(grammar->accepting().value());
}

TEST(Grammar, EndTokenFinishes) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  auto grammar = Grammar::compile(tokenizer, GrammarKind::kRegex, "a+");
  ASSERT_TRUE(grammar.ok());
  consume_text(*grammar, tokenizer, "aa");
  EXPECT_FALSE(grammar->finished());
  ASSERT_TRUE(grammar->consume(*tokenizer.eos()).ok());
  EXPECT_TRUE(grammar->finished());
  EXPECT_EQ(allowed(*grammar, tokenizer), (std::set<std::string>{"<|end|>"}));
  EXPECT_FALSE(grammar->consume(TokenId{3 + 'a'}).ok());
}

// The mask against trying every token, along random walks.
TEST(Grammar, MaskEqualsTryingEveryToken) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  for (const char* regex : {"(hello|help|he) (world|w[a-f]*)", "[0-9]{1,3}\\.[0-9]+", "(a|é|日)+z?"}) {
    auto grammar = Grammar::compile(tokenizer, GrammarKind::kRegex, regex);
    ASSERT_TRUE(grammar.ok());
    unsigned random = 12345;
    for (int step = 0; step < 8 && !grammar->finished(); ++step) {
      const auto mask = mask_of(*grammar, tokenizer);
      std::vector<TokenId> fitting;
      for (int id = 0; id < tokenizer.vocabulary_size(); ++id) {
        const auto token = static_cast<TokenId>(id);
        Grammar trial = grammar->fork();
        const bool fits = trial.consume(token).ok();
        ASSERT_EQ(fits, allows(mask, token)) << regex << " step " << step << " " << tokenizer.token_name(token);
        if (fits && !tokenizer.is_special(token)) fitting.push_back(token);
      }
      if (fitting.empty()) break;
      random = random * 1664525U + 1013904223U;
      ASSERT_TRUE(grammar->consume(fitting[(random >> 16) % fitting.size()]).ok());
    }
  }
}

TEST(Grammar, RefusesBrokenGrammars) {
  const Tokenizer tokenizer = test::byte_level_tokenizer();
  const struct {
    GrammarKind kind;
    std::string source;
  } cases[] = {
      {GrammarKind::kRegex, "("},
      {GrammarKind::kRegex, "\xff"},
      {GrammarKind::kJsonSchema, "{"},
      {GrammarKind::kJsonSchema, R"({"type":"nonsense"})"},
      {GrammarKind::kJsonSchema, R"({"$ref":"#/nowhere"})"},
      {GrammarKind::kJsonSchema, std::string(50000, '[')},
      {GrammarKind::kLark, "start: missing"},
      {GrammarKind::kLark, "no start"},
  };
  for (const auto& [kind, source] : cases) {
    const auto grammar = Grammar::compile(tokenizer, kind, source);
    ASSERT_FALSE(grammar.ok()) << source.substr(0, 60);
    EXPECT_EQ(grammar.error().code, ErrorCode::kInvalidArgument) << grammar.error().message;
  }
}

TEST(Grammar, NeedsAnEndToken) {
  Vocabulary vocabulary = test::byte_level_vocabulary();
  vocabulary.eos.reset();
  const auto grammar = Grammar::compile(Tokenizer::from_vocabulary(vocabulary).value(), GrammarKind::kRegex, "a");
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(grammar.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace linnet
