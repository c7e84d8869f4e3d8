// Verify rounds over all layers or none: begun, and then resolved to how many drafts were accepted (docs/contracts.md, R01–R20).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "linnet/status.h"
#include "speculation/layer_state.h"

namespace linnet {

// More drafts than any round may have are taken for a fault of the caller.
inline constexpr std::int64_t kDraftsMax = 64;

using RowAcceptance = std::span<const std::int64_t>;  // accepted drafts of each row

// One layer as a transaction sees it. Acceptance: accepted drafts, one count (std::int64_t) or one for each row (RowAcceptance).
template <class Acceptance>
struct TransactionLayer {
  std::function<bool(std::int64_t drafts)> fits;
  std::function<Status(std::int64_t drafts)> begin;
  std::function<Status(const Acceptance& accepted, std::int64_t drafts)> resolve;
};

// A state machine: idle, a round open, or invalid for good. One thread. Borrows what its layers refer to.
//   1. Either every layer has begun the open round or the state is invalid.
//   2. Nothing leaves the invalid state: what the layers hold is to be thrown away.
// Errors are values, since a wrong acceptance may be corrected; each has its code and its text:
//   kInternal         speculative state is invalid and must be discarded
//   kTooLarge         invalid speculative draft count
//   kUnavailable      speculative state cannot begin this round
//   kInvalidArgument  invalid speculative acceptance count
// and a layer's own error is passed on as it is.
template <class Acceptance>
class SpeculativeTransaction {
 public:
  using Accepts = std::function<bool(const Acceptance& accepted, std::int64_t drafts)>;

  SpeculativeTransaction(std::vector<TransactionLayer<Acceptance>> layers, Accepts accepts);
  SpeculativeTransaction(SpeculativeTransaction&&) noexcept = default;
  SpeculativeTransaction& operator=(SpeculativeTransaction&&) noexcept = default;

  // Whether a round of `drafts` drafts may begin now. Changes nothing.
  Result<bool> can_begin(std::int64_t drafts) const;
  // The window has drafts + 1 inputs; drafts may be 0.
  Status begin(std::int64_t drafts);
  Status resolve(const Acceptance& accepted);

 private:
  Status validate(std::int64_t drafts) const;
  bool every_layer_fits(std::int64_t drafts) const;
  Status invalidate(Status failed);

  std::vector<TransactionLayer<Acceptance>> layers_;
  Accepts accepts_;
  std::optional<std::int64_t> active_;  // drafts of the open round
  bool invalid_ = false;
};

extern template class SpeculativeTransaction<std::int64_t>;
extern template class SpeculativeTransaction<RowAcceptance>;

// A transaction over any layers; without layers only the state machine runs.
template <class Acceptance>
SpeculativeTransaction<Acceptance> bind_transaction(std::vector<TransactionLayer<Acceptance>> layers,
                                                    typename SpeculativeTransaction<Acceptance>::Accepts accepts) {
  return {std::move(layers), std::move(accepts)};
}

// The layers of one sequence, each in its own way: rings by their capacity, others by round functions where they have them, else
// by trimming. Error (kUnsupported): "cache exposes an incomplete speculative transaction", for some round functions but not all
// three.
Result<SpeculativeTransaction<std::int64_t>> bind_cache_rollback(std::span<LayerState* const> caches);

// Layers that hold `rows` sequences; each has the three round functions, else the error above. They grow as they need.
Result<SpeculativeTransaction<RowAcceptance>> bind_row_cache_rollback(std::span<LayerState* const> caches, std::int64_t rows);

}  // namespace linnet
