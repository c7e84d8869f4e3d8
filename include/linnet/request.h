// A request in tokens, as the engine takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "linnet/ids.h"
#include "linnet/sampling.h"

namespace linnet {

struct Request {
  std::vector<TokenId> prompt;  // at least one token, each within the vocabulary
  SamplingParams sampling;
  std::optional<std::int32_t> max_tokens;  // tokens to generate at most, >= 0; absent: up to the context's end
  std::vector<TokenId> end_tokens;         // generating one of these ends the answer (it is counted, not emitted)
  bool ignore_eos = false;                 // end_tokens do not end the answer
  std::int32_t priority = 0;               // higher is admitted first

  bool operator==(const Request&) const = default;
};

}  // namespace linnet
