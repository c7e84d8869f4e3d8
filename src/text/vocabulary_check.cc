#include "text/vocabulary_check.h"

#include <string>
#include <utility>

namespace linnet {
namespace {

Error corrupt(std::string field, const std::string& what) {
  return {.code = ErrorCode::kCorrupt, .message = field + " " + what, .param = std::move(field)};
}

Error too_large(std::string field, const std::string& what) {
  return {.code = ErrorCode::kTooLarge, .message = field + " " + what, .param = std::move(field)};
}

// "[index] " and then `what`.
std::string element(std::size_t index, const std::string& what) {
  std::string text(1, '[');
  text.append(std::to_string(index)).append("] ").append(what);
  return text;
}

Status check_tokens(const Vocabulary& vocabulary) {
  const std::string field = "tokenizer.ggml.tokens";
  if (vocabulary.tokens.empty()) return corrupt(field, "is missing or empty");
  if (vocabulary.tokens.size() > kVocabularyTokensMax) {
    return too_large(field, "has " + std::to_string(vocabulary.tokens.size()) + " entries; at most " +
                                std::to_string(kVocabularyTokensMax) + " are read");
  }
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.tokens[i].size() > kTokenBytesMax) {
      return too_large(field, element(i, "has " + std::to_string(vocabulary.tokens[i].size()) + " bytes; at most " +
                                             std::to_string(kTokenBytesMax) + " are read"));
    }
  }
  return {};
}

Status check_count(const std::string& field, std::size_t count, std::size_t tokens) {
  if (count == tokens) return {};
  return corrupt(field, "has " + std::to_string(count) + " entries for " + std::to_string(tokens) + " tokens");
}

Status check_id(const std::string& field, const std::optional<TokenId>& id, std::size_t tokens) {
  if (!id) return {};
  if (index_of(*id) < tokens) return {};  // a negative id's index is above any size
  return corrupt(field, std::to_string(static_cast<std::int32_t>(*id)) + " is not an id of the " + std::to_string(tokens) +
                            " entries of tokenizer.ggml.tokens");
}

Status check_merges(const Vocabulary& vocabulary) {
  const std::string field = "tokenizer.ggml.merges";
  if (vocabulary.merges.size() > kVocabularyMergesMax) {
    return too_large(field, "has " + std::to_string(vocabulary.merges.size()) + " entries; at most " +
                                std::to_string(kVocabularyMergesMax) + " are read");
  }
  if (vocabulary.kind == VocabularyKind::kByteLevelBpe && vocabulary.merges.empty() && vocabulary.tokens.size() > 256) {
    return corrupt(field, "is missing or empty");
  }
  return {};
}

}  // namespace

Status check_vocabulary(const Vocabulary& vocabulary) {
  const std::size_t tokens = vocabulary.tokens.size();
  LINNET_RETURN_IF_ERROR(check_tokens(vocabulary));
  LINNET_RETURN_IF_ERROR(check_merges(vocabulary));
  if (!vocabulary.types.empty()) {
    LINNET_RETURN_IF_ERROR(check_count("tokenizer.ggml.token_type", vocabulary.types.size(), tokens));
  }
  for (std::size_t i = 0; i < vocabulary.types.size(); ++i) {
    const auto type = static_cast<unsigned>(vocabulary.types[i]);
    if (type < 1 || type > 6) {
      return corrupt("tokenizer.ggml.token_type", element(i, "is " + std::to_string(type) + "; 1 to 6 are known"));
    }
  }
  if (vocabulary.kind == VocabularyKind::kSentencePiece) {
    LINNET_RETURN_IF_ERROR(check_count("tokenizer.ggml.scores", vocabulary.scores.size(), tokens));
  }
  LINNET_RETURN_IF_ERROR(check_id("tokenizer.ggml.bos_token_id", vocabulary.bos, tokens));
  LINNET_RETURN_IF_ERROR(check_id("tokenizer.ggml.eos_token_id", vocabulary.eos, tokens));
  LINNET_RETURN_IF_ERROR(check_id("tokenizer.ggml.unknown_token_id", vocabulary.unk, tokens));
  return check_id("tokenizer.ggml.padding_token_id", vocabulary.pad, tokens);
}

}  // namespace linnet
