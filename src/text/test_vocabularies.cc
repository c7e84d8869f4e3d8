#include "text/test_vocabularies.h"

#include <array>
#include <cstdio>

#include "base/check.h"

namespace linnet::test {
namespace {

std::string utf8_of(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

void add(Vocabulary& vocabulary, const std::string& token, TokenType type = TokenType::kNormal, float score = 0.0F) {
  vocabulary.tokens.push_back(token);
  vocabulary.types.push_back(type);
  if (vocabulary.kind == VocabularyKind::kSentencePiece) vocabulary.scores.push_back(score);
}

}  // namespace

std::vector<std::string> byte_alphabet() {
  std::vector<std::string> alphabet;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    alphabet.push_back(utf8_of(itself ? byte : next++));
  }
  return alphabet;
}

Vocabulary byte_level_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::kByteLevelBpe;
  vocabulary.pre_tokenizer = "smollm";
  add(vocabulary, "<|end|>", TokenType::kControl);
  add(vocabulary, "<|start|>", TokenType::kControl);
  add(vocabulary, "<tool>", TokenType::kUserDefined);
  for (const std::string& token : byte_alphabet()) add(vocabulary, token);
  const std::string space = "\u0120";
  const std::vector<std::array<std::string, 2>> merges = {
      {"h", "e"},          {"l", "l"}, {"he", "ll"},          {"hell", "o"},  {"o", "r"}, {space, "w"},
      {space + "w", "or"}, {"l", "d"}, {space + "wor", "ld"}, {space, space}, {"1", "2"}};
  for (const auto& [left, right] : merges) {
    add(vocabulary, left + right);
    std::string merge = left;
    merge.append(" ").append(right);
    vocabulary.merges.push_back(merge);
  }
  vocabulary.bos = TokenId{1};
  vocabulary.eos = TokenId{0};
  return vocabulary;
}

Vocabulary sentence_piece_vocabulary() {
  Vocabulary vocabulary;
  vocabulary.kind = VocabularyKind::kSentencePiece;
  add(vocabulary, "<unk>", TokenType::kUnknown);
  add(vocabulary, "<s>", TokenType::kControl);
  add(vocabulary, "</s>", TokenType::kControl);
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::array<char, 8> name{};
    std::snprintf(name.data(), name.size(), "<0x%02X>", byte);
    add(vocabulary, name.data(), TokenType::kByte);
  }
  const std::string space = "\u2581";
  float score = -1.0F;
  for (const std::string& piece :
       {std::string("ll"), std::string("he"), std::string("hell"), std::string("hello"), space + "hello", std::string("wo"),
        space + "wo", std::string("rl"), space + "worl", space + "world", space}) {
    add(vocabulary, piece, TokenType::kNormal, score);
    score -= 1.0F;
  }
  for (const char letter : std::string("helowrdabc")) {
    add(vocabulary, std::string(1, letter), TokenType::kNormal, score);
    score -= 1.0F;
  }
  add(vocabulary, "  ", TokenType::kUserDefined, -1000.0F);
  add(vocabulary, "   ", TokenType::kUserDefined, -1000.0F);
  add(vocabulary, "<tool call>", TokenType::kUserDefined, -1000.0F);
  vocabulary.bos = TokenId{1};
  vocabulary.eos = TokenId{2};
  vocabulary.unk = TokenId{0};
  return vocabulary;
}

Tokenizer byte_level_tokenizer() {
  auto tokenizer = Tokenizer::from_vocabulary(byte_level_vocabulary());
  CHECK_MSG(tokenizer.ok(), tokenizer.error().message);
  return std::move(tokenizer).value();
}

Tokenizer sentence_piece_tokenizer() {
  auto tokenizer = Tokenizer::from_vocabulary(sentence_piece_vocabulary());
  CHECK_MSG(tokenizer.ok(), tokenizer.error().message);
  return std::move(tokenizer).value();
}

}  // namespace linnet::test
