// What of a row, beside its parameters, decides on its next token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "linnet/ids.h"
#include "linnet/sampling.h"

namespace linnet {

// Views of what the control plane owns; they stay valid until the step is collected.
struct RowContext {
  std::span<const TokenId> history;       // prompt and answer so far, up to and with the row's last input
  std::span<const LogitBias> logit_bias;  // each token at most once
  std::span<const TokenId> end_tokens;    // barred before min_tokens, never dropped by XTC
  std::span<const TokenId> xtc_exempt;    // further tokens that XTC never drops
  // Grammar: bit `id % 32` of word `id / 32` is set if the token may come next. Empty: any may. A row with several samples has
  // as many masks, one after the other.
  std::span<const std::uint32_t> mask;

  // The context of the `index`-th of a row's `samples` samples: those before the last don't know the last inputs yet.
  RowContext of_sample(std::int32_t index, std::int32_t samples) const {
    RowContext one = *this;
    const auto later = static_cast<std::size_t>(samples - 1 - index);
    one.history = history.first(history.size() - (history.empty() ? 0 : later));
    const std::size_t words = mask.size() / static_cast<std::size_t>(samples);
    one.mask = mask.subspan(static_cast<std::size_t>(index) * words, words);
    return one;
  }
};

}  // namespace linnet
