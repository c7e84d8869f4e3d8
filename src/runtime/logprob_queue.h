// Logprobs of tokens on their way into text deltas.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "linnet/event.h"
#include "linnet/text_engine.h"
#include "text/tokenizer.h"

namespace linnet {

// One sequence, one thread at a time. A token's entry waits until the text shows the first byte that the token stands for: text
// may be held back, and a character may take several tokens.
class LogprobQueue {
 public:
  explicit LogprobQueue(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  // `begins_at`: bytes of text before this token's.
  void push(TokenId token, const TokenLogprobs& logprobs, std::size_t begins_at);
  // The entries of tokens that begin before `shown` bytes of text.
  std::vector<TextLogprobs> take_before(std::size_t shown);
  std::vector<TextLogprobs> take_all();

 private:
  struct Entry {
    std::size_t begins_at = 0;
    TextLogprobs logprobs;
  };
  TextLogprob named(TokenId token, float logprob) const;

  Tokenizer tokenizer_;
  std::deque<Entry> entries_;  // in order of begins_at
};

}  // namespace linnet
