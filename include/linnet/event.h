// What a sequence tells its consumer: tokens, then exactly one final event.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "linnet/ids.h"
#include "linnet/sampling.h"
#include "linnet/status.h"

namespace linnet {

enum class FinishReason {
  kStop,       // an end token, the end of a grammar, or (in text) a stop string
  kLength,     // max_tokens or the context's end
  kCancelled,  // by the consumer
  kError,      // FinishEvent::error says what
};

struct Usage {
  std::int32_t prompt_tokens = 0;
  std::int32_t cached_tokens = 0;      // of the prompt, not computed again
  std::int32_t completion_tokens = 0;  // generated, an end token included
  std::int32_t reasoning_tokens = 0;   // of these, in text: inside the reasoning part

  bool operator==(const Usage&) const = default;
};

struct TokenLogprob {
  TokenId token{};
  float logprob = 0;  // natural logarithm

  bool operator==(const TokenLogprob&) const = default;
};

// Of one generated token, in the distribution before top_p, min_p, XTC, top_k and temperature. A value: copying allocates
// nothing.
struct TokenLogprobs {
  float logprob = 0;                                // of the token itself
  std::int32_t top_count = 0;                       // as many as were asked for
  std::array<TokenLogprob, kTopLogprobsMax> top{};  // the first top_count: the most likely tokens, ties to the lower id

  std::span<const TokenLogprob> most_likely() const { return std::span(top).first(static_cast<std::size_t>(top_count)); }
  bool operator==(const TokenLogprobs&) const = default;
};

struct TokenEvent {
  TokenId token{};
  std::optional<TokenLogprobs> logprobs;  // present if the request asked for them

  bool operator==(const TokenEvent&) const = default;
};

struct FinishEvent {
  FinishReason reason = FinishReason::kStop;
  Usage usage;
  std::optional<Error> error;  // present if and only if reason is kError
  std::string stop_string{};   // in text: the stop string that ended the answer; empty: none did

  bool operator==(const FinishEvent&) const = default;
};

using Event = std::variant<TokenEvent, FinishEvent>;

}  // namespace linnet
