// What a request tells its consumer: tokens, then exactly one final event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "linnet/ids.h"
#include "linnet/status.h"

namespace linnet {

enum class FinishReason {
  kStop,       // an end token, or (in text) a stop string
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

struct TokenEvent {
  TokenId token{};

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
