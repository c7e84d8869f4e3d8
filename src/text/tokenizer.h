// Text to token ids and back, with the same ids as the model's own Hugging Face tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/ids.h"
#include "linnet/status.h"
#include "text/vocabulary.h"

namespace linnet {

struct EncodeOptions {
  bool add_special = true;    // the tokens that the tokenizer puts around a text by itself (BOS, ...)
  bool parse_special = true;  // special tokens written in the text become their ids; false: they are text
};

// Immutable after creation; every const method may be called from any thread. Copies share one vocabulary.
class Tokenizer {
 public:
  // `tokenizer_json`: the text of a tokenizer.json. `tokenizer_config_json`: that of tokenizer_config.json, empty if there is
  // none; it names bos, eos, unk and pad. Errors: kCorrupt with the reason and, where there is one, the field.
  static Result<Tokenizer> from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json = {});
  // Errors: kCorrupt naming the GGUF field and value; kUnsupported for an unknown pre-tokenizer, with the list of known ones.
  static Result<Tokenizer> from_vocabulary(const Vocabulary& vocabulary);

  Tokenizer(const Tokenizer&);
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(const Tokenizer&);
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // Errors: kInvalidArgument if `text` is not UTF-8; kTooLarge above kEncodeBytesMax.
  Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Valid UTF-8: what is not becomes U+FFFD, one per maximal broken part. Ids outside the vocabulary are skipped.
  std::string decode(std::span<const TokenId> tokens, bool skip_special = true) const;

  // The bytes that a token stands for in a text; not always whole characters. Empty for special tokens and for ids that the
  // vocabulary doesn't have. Valid as long as any copy of this tokenizer.
  std::string_view token_bytes(TokenId token) const;
  // A token's own name, as the vocabulary writes it ("<|im_end|>", "Ġthe"); empty for ids that the vocabulary doesn't have.
  std::string_view token_name(TokenId token) const;
  // Control and unknown tokens: never part of an answer's text.
  bool is_special(TokenId token) const;
  // Largest id + 1; may be smaller than the model's number of logits.
  std::int32_t vocabulary_size() const;
  // By name, as token_name() gives it.
  std::optional<TokenId> id_of(std::string_view name) const;

  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  std::optional<TokenId> unk() const;
  std::optional<TokenId> pad() const;
  // Whether encode() with add_special begins with bos().
  bool adds_bos() const;
  // Whether a text's first space is the tokenizer's own addition, which decoding takes off again.
  bool strips_leading_space() const;

  static constexpr std::size_t kEncodeBytesMax = std::size_t{64} << 20;

 private:
  friend class Grammar;
  class Impl;
  explicit Tokenizer(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace linnet
