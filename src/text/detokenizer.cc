#include "text/detokenizer.h"

#include <string_view>
#include <utility>

namespace linnet {

Detokenizer::Detokenizer(Tokenizer tokenizer, SpecialTokens special) : tokenizer_(std::move(tokenizer)), special_(special) {}

std::string Detokenizer::push(TokenId token) {
  std::string_view bytes = tokenizer_.token_bytes(token);
  if (special_ == SpecialTokens::kKeep && tokenizer_.is_special(token)) bytes = tokenizer_.token_name(token);
  if (at_start_ && !bytes.empty()) {
    at_start_ = false;
    if (tokenizer_.strips_leading_space() && bytes.front() == ' ') bytes.remove_prefix(1);
  }
  std::string text;
  stream_.push(bytes, text);
  return text;
}

std::string Detokenizer::finish() {
  std::string text;
  stream_.finish(text);
  at_start_ = true;
  return text;
}

}  // namespace linnet
