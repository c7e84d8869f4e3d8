// What a GGUF file says about its tokenizer: views, checked against one another.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "linnet/ids.h"
#include "linnet/status.h"
#include "weights/gguf.h"

namespace linnet {

// Views of the file, valid as long as it.
//   1. types and scores, where present, have one entry for each token; types are 1 .. 6.
//   2. Every id is that of a token.
//   3. Every merge has a space between two parts.
struct GgufVocabulary {
  std::string_view model;         // "gpt2", "llama", ...
  std::string_view pre;           // the pre-tokenizer's name; may be empty
  GgufStrings tokens;             // by id; at least one
  std::optional<GgufInts> types;  // normal 1, unknown 2, control 3, user-defined 4, unused 5, byte 6
  std::optional<GgufFloats> scores;
  GgufStrings merges;  // "left right", best first
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> unk;
  std::optional<TokenId> pad;
  std::optional<TokenId> eot;  // ends a turn
  std::optional<TokenId> eom;  // ends a message that calls a tool
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_space_prefix;
};

// Errors: kCorrupt, naming the key, what was found and, where one entry is at fault, its index.
Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file);

}  // namespace linnet
