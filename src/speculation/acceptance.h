// How much of a verify window an answer takes: a pure function of drafts, limits and what the row itself draws.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "linnet/ids.h"
#include "linnet/status.h"
#include "speculation/rollback.h"

namespace linnet {

// The row's own choice, asked in order of the window and never beyond what is needed.
struct AcceptanceWalk {
  // The token that the row's sampler takes at this position of the window (0 … drafts), with its own step, seed, penalties and
  // mask, given that every draft before it stands. An error: the row failed.
  std::function<Result<TokenId>(std::size_t position)> draw;
  // A token joins the answer; called before the next draw. Moves a fork of the row's grammar, so that the grammar itself stays
  // where it is until the window is resolved. True: the grammar is complete, and the answer ends with this token. Empty: no
  // grammar.
  std::function<Result<bool>(TokenId token)> advance;
};

struct AcceptanceLimits {
  std::size_t tokens_left = 1;    // that the answer may still have, an end token counted; >= 1
  std::span<const TokenId> ends;  // end tokens; empty if they are ignored
};

struct AcceptanceResult {
  std::size_t position = 0;   // draws made: accepted, and one more with a correction
  std::int64_t accepted = 0;  // leading drafts that stand, an end token counted; the window keeps accepted + 1 inputs
  // What was drawn where the first draft was wrong, or after the last one (the bonus): the next pending token, unless done.
  std::optional<TokenId> correction;
  bool saw_eos = false;  // an end token was drawn; it counts and is not emitted
  bool grammar_done = false;
  bool done = false;  // by an end token, the grammar or the limit

  std::span<const TokenId> emitted() const { return std::span(tokens).first(emitted_count); }

  std::array<TokenId, static_cast<std::size_t>(kDraftsMax) + 1> tokens{};  // emitted, in order
  std::size_t emitted_count = 0;

  bool operator==(const AcceptanceResult&) const = default;
};

// A draft stands if it is the token that the row draws at its place: the answer is the one without drafts, greedy or sampled.
// Errors: those of `walk`.
Result<AcceptanceResult> accept_drafts(std::span<const TokenId> drafts, const AcceptanceLimits& limits,
                                       const AcceptanceWalk& walk);

}  // namespace linnet
