#include "weights/gguf_vocabulary.h"

#include <cmath>
#include <cstddef>
#include <string>

#include "weights/config_limits.h"
#include "weights/quote.h"

namespace linnet {
namespace {

constexpr std::int64_t kTypeMax = 6;

// `name` below "tokenizer.ggml."; null if it is absent.
const GgufValue* find(const GgufFile& file, std::string_view name) { return file.find("tokenizer.ggml." + std::string(name)); }

Result<std::optional<TokenId>> token_id(const GgufFile& file, std::string_view name, std::size_t tokens) {
  const GgufValue* value = find(file, name);
  if (value == nullptr) return std::optional<TokenId>();
  LINNET_ASSIGN(const std::int64_t id, value->as_int());
  if (id < 0 || static_cast<std::uint64_t>(id) >= tokens) {
    return value->error(ErrorCode::kCorrupt, "is " + std::to_string(id) + "; there are " + std::to_string(tokens) + " tokens");
  }
  return std::optional<TokenId>(static_cast<TokenId>(id));
}

Result<std::optional<bool>> flag(const GgufFile& file, std::string_view name) {
  const GgufValue* value = find(file, name);
  if (value == nullptr) return std::optional<bool>();
  LINNET_ASSIGN(const bool yes, value->as_bool());
  return std::optional<bool>(yes);
}

Status check_size(const GgufValue& value, std::size_t tokens) {
  if (value.size() == tokens) return {};
  return value.error(ErrorCode::kCorrupt,
                     "has " + std::to_string(value.size()) + " elements for " + std::to_string(tokens) + " tokens");
}

Status read_types(const GgufFile& file, GgufVocabulary& vocabulary) {
  const GgufValue* value = find(file, "token_type");
  if (value == nullptr) return {};
  LINNET_ASSIGN(const GgufInts types, value->as_ints());
  LINNET_RETURN_IF_ERROR(check_size(*value, vocabulary.tokens.size()));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 1 || types[i] > kTypeMax) {
      return value->error(ErrorCode::kCorrupt, "has " + std::to_string(types[i]) + " at index " + std::to_string(i) + "; 1 to " +
                                                   std::to_string(kTypeMax) + " are allowed");
    }
  }
  vocabulary.types = types;
  return {};
}

Status read_scores(const GgufFile& file, GgufVocabulary& vocabulary) {
  const GgufValue* value = find(file, "scores");
  if (value == nullptr) return {};
  LINNET_ASSIGN(const GgufFloats scores, value->as_floats());
  LINNET_RETURN_IF_ERROR(check_size(*value, vocabulary.tokens.size()));
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) return value->error(ErrorCode::kCorrupt, "has NaN at index " + std::to_string(i));
  }
  vocabulary.scores = scores;
  return {};
}

Status read_merges(const GgufFile& file, GgufVocabulary& vocabulary) {
  const GgufValue* value = find(file, "merges");
  if (value == nullptr) return {};
  LINNET_ASSIGN(vocabulary.merges, value->as_strings());
  std::size_t index = 0;
  for (const std::string_view merge : vocabulary.merges) {
    // The first part may itself begin with a space.
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == merge.size()) {
      return value->error(ErrorCode::kCorrupt, "has " + quote(merge) + " at index " + std::to_string(index) +
                                                   "; two parts with a space between them are wanted");
    }
    ++index;
  }
  return {};
}

Status read_ids(const GgufFile& file, GgufVocabulary& vocabulary) {
  const std::size_t tokens = vocabulary.tokens.size();
  LINNET_ASSIGN(vocabulary.bos, token_id(file, "bos_token_id", tokens));
  LINNET_ASSIGN(vocabulary.eos, token_id(file, "eos_token_id", tokens));
  LINNET_ASSIGN(vocabulary.unk, token_id(file, "unknown_token_id", tokens));
  LINNET_ASSIGN(vocabulary.pad, token_id(file, "padding_token_id", tokens));
  LINNET_ASSIGN(vocabulary.eot, token_id(file, "eot_token_id", tokens));
  LINNET_ASSIGN(vocabulary.eom, token_id(file, "eom_token_id", tokens));
  LINNET_ASSIGN(vocabulary.add_bos, flag(file, "add_bos_token"));
  LINNET_ASSIGN(vocabulary.add_eos, flag(file, "add_eos_token"));
  LINNET_ASSIGN(vocabulary.add_space_prefix, flag(file, "add_space_prefix"));
  return {};
}

}  // namespace

Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file) {
  GgufVocabulary vocabulary;
  LINNET_ASSIGN(const GgufValue* model, file.require("tokenizer.ggml.model"));
  LINNET_ASSIGN(vocabulary.model, model->as_string());
  if (const GgufValue* pre = find(file, "pre")) {
    LINNET_ASSIGN(vocabulary.pre, pre->as_string());
  }
  LINNET_ASSIGN(const GgufValue* tokens, file.require("tokenizer.ggml.tokens"));
  LINNET_ASSIGN(vocabulary.tokens, tokens->as_strings());
  if (vocabulary.tokens.size() == 0 || vocabulary.tokens.size() > static_cast<std::size_t>(ConfigLimits::kVocabularyMax)) {
    return tokens->error(ErrorCode::kCorrupt, "has " + std::to_string(vocabulary.tokens.size()) + " tokens; 1 to " +
                                                  std::to_string(ConfigLimits::kVocabularyMax) + " are allowed");
  }
  LINNET_RETURN_IF_ERROR(read_types(file, vocabulary));
  LINNET_RETURN_IF_ERROR(read_scores(file, vocabulary));
  LINNET_RETURN_IF_ERROR(read_merges(file, vocabulary));
  LINNET_RETURN_IF_ERROR(read_ids(file, vocabulary));
  return vocabulary;
}

}  // namespace linnet
