// What a GGUF file says about its tokenizer, as values: the input of Tokenizer::from_vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linnet/ids.h"

namespace linnet {

enum class VocabularyKind : std::uint8_t {
  kByteLevelBpe,   // tokenizer.ggml.model "gpt2": bytes as printable characters, ranked merges
  kSentencePiece,  // "llama": scores, U+2581 for a space, <0xNN> for bytes that no token has
};

// Numbered as GGUF numbers tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// Untrusted: nothing in it has been checked against anything else.
struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kByteLevelBpe;
  std::string pre_tokenizer;        // tokenizer.ggml.pre; kByteLevelBpe only, empty: "default"
  std::vector<std::string> tokens;  // by id; bytes as the file has them
  std::vector<TokenType> types;     // one per token, or empty: all normal
  std::vector<float> scores;        // one per token; kSentencePiece only
  std::vector<std::string> merges;  // "left right", best first; kByteLevelBpe, and kSentencePiece files that carry them
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unk;
  std::optional<TokenId> pad;
  std::optional<bool> add_bos;           // absent: kSentencePiece yes, kByteLevelBpe no
  std::optional<bool> add_eos;           // absent: no
  std::optional<bool> add_space_prefix;  // absent: kSentencePiece yes, kByteLevelBpe no
};

}  // namespace linnet
