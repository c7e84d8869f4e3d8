#include "runtime/logprob_queue.h"

#include <limits>
#include <string>
#include <utility>

#include "text/utf8.h"

namespace linnet {

TextLogprob LogprobQueue::named(TokenId token, float logprob) const {
  const bool special = tokenizer_.is_special(token);
  TextLogprob named{.bytes = std::string(special ? tokenizer_.token_name(token) : tokenizer_.token_bytes(token)),
                    .logprob = logprob};
  Utf8Stream characters;
  characters.push(named.bytes, named.text);
  characters.finish(named.text);
  return named;
}

void LogprobQueue::push(TokenId token, const TokenLogprobs& logprobs, std::size_t begins_at) {
  Entry entry{.begins_at = begins_at, .logprobs = {.token = named(token, logprobs.logprob)}};
  for (const TokenLogprob& likely : logprobs.most_likely()) {
    // Rows beyond the tokenizer's vocabulary, or barred by a grammar, name nothing.
    if (index_of(likely.token) >= static_cast<std::size_t>(tokenizer_.vocabulary_size())) continue;
    entry.logprobs.top.push_back(named(likely.token, likely.logprob));
  }
  entries_.push_back(std::move(entry));
}

std::vector<TextLogprobs> LogprobQueue::take_before(std::size_t shown) {
  std::vector<TextLogprobs> taken;
  while (!entries_.empty() && entries_.front().begins_at < shown) {
    taken.push_back(std::move(entries_.front().logprobs));
    entries_.pop_front();
  }
  return taken;
}

std::vector<TextLogprobs> LogprobQueue::take_all() { return take_before(std::numeric_limits<std::size_t>::max()); }

}  // namespace linnet
