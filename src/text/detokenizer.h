// Token ids to text, one at a time: what is certain comes out at once.
#pragma once

#include <string>

#include "linnet/ids.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace linnet {

enum class SpecialTokens { kSkip, kKeep };

// One per sequence, one thread at a time. Keeps at most the 3 bytes of a character that is not complete yet.
//   1. The concatenation of all push() results and finish() equals Tokenizer::decode of the same ids, however they are cut.
//   2. Every result is valid UTF-8; U+FFFD appears only for bytes that are no UTF-8, or that end in the middle of a character.
class Detokenizer {
 public:
  explicit Detokenizer(Tokenizer tokenizer, SpecialTokens special = SpecialTokens::kSkip);

  // The text that `token` completes; empty if it only begins a character, or is special and skipped.
  std::string push(TokenId token);
  // What is left: empty, or U+FFFD for an incomplete character. The next push() begins a new text.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  SpecialTokens special_;
  bool at_start_ = true;  // nothing has come out yet
  Utf8Stream stream_;
};

}  // namespace linnet
