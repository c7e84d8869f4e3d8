// One sequence's way through its grammar.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "linnet/ids.h"
#include "linnet/status.h"
#include "text/grammar.h"

namespace linnet {

// Engine's thread only. The buffer of the mask is made once.
class RowGrammar {
 public:
  // From `beginning`'s point; `vocabulary`: of the model's logits.
  RowGrammar(const Grammar& beginning, std::int32_t vocabulary);

  // Computes the mask of the next token. `barred`: tokens that may not come yet, unless nothing else may.
  // Errors: the grammar passed its own limits; the row cannot go on.
  Status prepare(std::span<const TokenId> barred);
  // As RowContext::mask; of the last prepare().
  std::span<const std::uint32_t> mask() const { return mask_; }
  // Errors: the token does not fit.
  Status advance(TokenId token) { return grammar_.consume(token); }
  // Nothing may follow.
  bool finished() const { return grammar_.finished(); }

 private:
  Grammar grammar_;
  std::vector<std::uint32_t> mask_;
};

}  // namespace linnet
