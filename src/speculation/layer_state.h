// What a verify round asks of the state of one layer, or of one group of layers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>

#include "linnet/status.h"

namespace linnet {

// How many inputs of a verify window stay, the pending token counted: one number for all rows, or one for each.
using Keep = std::variant<std::int64_t, std::span<const std::int64_t>>;

// The three round functions of a state that can undo a part of a window. They come together or not at all, which binding checks.
struct RowSpeculativeState {
  std::function<Status()> spec_round_begin;                // remember enough to undo
  std::function<Status()> spec_round_commit;               // everything written since begin stays
  std::function<Status(const Keep&)> spec_round_rollback;  // the first `keep` inputs since begin stay
};

// Engine thread. Everything counts tokens.
class LayerState {
 public:
  virtual ~LayerState() = default;
  // Tokens written so far; of the longest row if there are several.
  virtual std::int64_t offset() const = 0;
  // Of a ring, which forgets its oldest tokens once it is full and cannot be trimmed from then on; nothing: not a ring.
  virtual std::optional<std::int64_t> ring_capacity() const { return std::nullopt; }
  virtual bool can_trim() const = 0;
  // Forgets the last `count` tokens; only if can_trim().
  virtual Status trim(std::int64_t count) = 0;
  // What it has of the three; they refer to this object.
  virtual RowSpeculativeState round_functions() { return {}; }
};

}  // namespace linnet
