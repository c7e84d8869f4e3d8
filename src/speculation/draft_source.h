// Where drafts come from.
#pragma once

#include <cstddef>
#include <span>

#include "linnet/ids.h"

namespace linnet {

// One sequence's. Engine thread. A wrong draft costs time, never a wrong answer.
class DraftSource {
 public:
  virtual ~DraftSource() = default;
  // Takes in a history, prompt and answer, that grew since the last call. Calling it while a prompt is being prefilled spreads
  // the work; propose() does what is left.
  virtual void observe(std::span<const TokenId> history) = 0;
  // Writes what may follow the history, 0 … into.size() tokens, and returns how many.
  virtual std::size_t propose(std::span<const TokenId> history, std::span<TokenId> into) = 0;
};

}  // namespace linnet
