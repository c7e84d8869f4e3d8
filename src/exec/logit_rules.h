// What changes a row's logits before a token is chosen from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/row_context.h"
#include "linnet/sampling.h"

namespace linnet {

// In this order: logit_bias; repetition, presence and frequency penalty; end tokens before min_tokens; grammar mask.
// Owns scratch for one vocabulary; one thread at a time. Nothing allocates after construction.
class LogitRules {
 public:
  explicit LogitRules(std::int32_t vocabulary);
  static constexpr std::size_t memory_bytes(std::int32_t vocabulary) {
    return static_cast<std::size_t>(vocabulary) * (sizeof(float) + sizeof(std::int32_t));
  }

  // `step`: index of the token in the answer, the last `step` tokens of the history being the answer so far. The changed logits,
  // or `logits` themselves where no rule applies; valid until the next call.
  std::span<const float> apply(std::span<const float> logits, const SamplingParams& params, const RowContext& context,
                               std::uint64_t step);

 private:
  template <class Change>
  void for_each_in(std::span<const TokenId> window, const Change& change);
  void penalize(const SamplingParams& params, std::span<const TokenId> history, std::uint64_t step);
  void bar(std::span<const std::uint32_t> mask);

  std::vector<float> changed_;
  std::vector<std::int32_t> counts_;  // by token; 0 between calls
};

}  // namespace linnet
