// Whether a request can be served at all, decided once, on the thread that submits it.
#pragma once

#include <cstdint>

#include "linnet/request.h"
#include "linnet/sampling.h"
#include "linnet/status.h"

namespace linnet {

// What the executor and its KV can hold.
struct AdmissionLimits {
  std::int32_t vocabulary = 0;
  std::int32_t context_max = 0;  // tokens of prompt + answer, that the KV pool can hold as well
  std::int32_t block_tokens = 1;
  std::int32_t block_count = 1;  // in the KV pool
  std::int32_t choices_max = 1;
};

// Errors (kInvalidArgument): a parameter out of its range; `param` names it.
Status check_sampling(const SamplingParams& params);

// The length at which each answer ends at the latest, prompt included: min(prompt + max_tokens, context_max), and less if several
// choices would not find room in the KV pool together.
// Errors: kInvalidArgument (`param` names the field) and kContextLengthExceeded.
Result<std::int32_t> admissible_limit(const Request& request, const AdmissionLimits& limits);

}  // namespace linnet
