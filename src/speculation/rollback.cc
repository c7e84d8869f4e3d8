#include "speculation/rollback.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace linnet {
namespace {

Error discard_error() { return {ErrorCode::kInternal, "speculative state is invalid and must be discarded", ""}; }
Error draft_count_error() { return {ErrorCode::kTooLarge, "invalid speculative draft count", "drafts"}; }
Error cannot_begin_error() { return {ErrorCode::kUnavailable, "speculative state cannot begin this round", ""}; }
Error acceptance_error() { return {ErrorCode::kInvalidArgument, "invalid speculative acceptance count", "accepted"}; }
Error incomplete_error() { return {ErrorCode::kUnsupported, "cache exposes an incomplete speculative transaction", ""}; }

int count_of(const RowSpeculativeState& state) {
  return int{state.spec_round_begin != nullptr} + int{state.spec_round_commit != nullptr} +
         int{state.spec_round_rollback != nullptr};
}
constexpr int kAllFunctions = 3;

// One layer of one sequence. The window writes drafts + 1 tokens; after that a ring must still be below its capacity to be
// trimmed.
bool layer_fits(const LayerState& cache, bool has_round, std::int64_t drafts) {
  if (const std::optional<std::int64_t> capacity = cache.ring_capacity()) return drafts + 1 < *capacity - cache.offset();
  return has_round || cache.can_trim();
}

TransactionLayer<std::int64_t> layer_of(LayerState& cache, RowSpeculativeState round) {
  const bool has_round = count_of(round) == kAllFunctions;
  TransactionLayer<std::int64_t> layer;
  layer.fits = [&cache, has_round](std::int64_t drafts) { return layer_fits(cache, has_round, drafts); };
  if (!has_round) {
    layer.begin = [](std::int64_t) { return Status(); };
    layer.resolve = [&cache](std::int64_t accepted, std::int64_t drafts) {
      return accepted < drafts ? cache.trim(drafts - accepted) : Status();
    };
    return layer;
  }
  layer.begin = [begin = std::move(round.spec_round_begin)](std::int64_t) { return begin(); };
  layer.resolve = [commit = std::move(round.spec_round_commit), rollback = std::move(round.spec_round_rollback)](
                      std::int64_t accepted, std::int64_t drafts) {
    return accepted < drafts ? rollback(Keep(accepted + 1)) : commit();
  };
  return layer;
}

Status resolve_rows(const RowSpeculativeState& round, RowAcceptance accepted, std::int64_t drafts,
                    std::vector<std::int64_t>& keeps) {
  const auto all_are = [accepted](std::int64_t count) {
    return std::all_of(accepted.begin(), accepted.end(), [count](std::int64_t each) { return each == count; });
  };
  if (all_are(drafts)) return round.spec_round_commit();
  if (all_are(accepted.front())) return round.spec_round_rollback(Keep(accepted.front() + 1));
  std::transform(accepted.begin(), accepted.end(), keeps.begin(), [](std::int64_t each) { return each + 1; });
  return round.spec_round_rollback(Keep(std::span<const std::int64_t>(keeps)));
}

// With no drafts only the pending token is consumed, which nothing can reject: layers are left alone.
TransactionLayer<RowAcceptance> row_layer_of(RowSpeculativeState round, std::int64_t rows) {
  TransactionLayer<RowAcceptance> layer;
  layer.fits = [](std::int64_t) { return true; };
  layer.begin = [begin = round.spec_round_begin](std::int64_t drafts) { return drafts > 0 ? begin() : Status(); };
  layer.resolve = [round = std::move(round), keeps = std::vector<std::int64_t>(static_cast<std::size_t>(rows))](
                      RowAcceptance accepted, std::int64_t drafts) mutable {
    return drafts > 0 ? resolve_rows(round, accepted, drafts, keeps) : Status();
  };
  return layer;
}

bool is_count_of(std::int64_t accepted, std::int64_t drafts) { return accepted >= 0 && accepted <= drafts; }

}  // namespace

template <class Acceptance>
SpeculativeTransaction<Acceptance>::SpeculativeTransaction(std::vector<TransactionLayer<Acceptance>> layers, Accepts accepts)
    : layers_(std::move(layers)), accepts_(std::move(accepts)) {
  CHECK(accepts_ != nullptr);
  for (const TransactionLayer<Acceptance>& layer : layers_) CHECK(layer.fits && layer.begin && layer.resolve);
}

template <class Acceptance>
Status SpeculativeTransaction<Acceptance>::validate(std::int64_t drafts) const {
  if (invalid_) return discard_error();
  if (drafts < 0 || drafts > kDraftsMax) return draft_count_error();
  return {};
}

template <class Acceptance>
bool SpeculativeTransaction<Acceptance>::every_layer_fits(std::int64_t drafts) const {
  return std::all_of(layers_.begin(), layers_.end(), [drafts](const auto& layer) { return layer.fits(drafts); });
}

template <class Acceptance>
Status SpeculativeTransaction<Acceptance>::invalidate(Status failed) {
  invalid_ = true;
  return failed;
}

template <class Acceptance>
Result<bool> SpeculativeTransaction<Acceptance>::can_begin(std::int64_t drafts) const {
  LINNET_RETURN_IF_ERROR(validate(drafts));
  return !active_ && every_layer_fits(drafts);
}

template <class Acceptance>
Status SpeculativeTransaction<Acceptance>::begin(std::int64_t drafts) {
  LINNET_ASSIGN(const bool possible, can_begin(drafts));
  if (!possible) return cannot_begin_error();
  active_ = drafts;
  for (const TransactionLayer<Acceptance>& layer : layers_) {
    if (Status status = layer.begin(drafts); !status.ok()) return invalidate(std::move(status));
  }
  return {};
}

template <class Acceptance>
Status SpeculativeTransaction<Acceptance>::resolve(const Acceptance& accepted) {
  if (invalid_) return discard_error();
  if (!active_ || !accepts_(accepted, *active_)) return acceptance_error();
  for (const TransactionLayer<Acceptance>& layer : layers_) {
    if (Status status = layer.resolve(accepted, *active_); !status.ok()) return invalidate(std::move(status));
  }
  active_.reset();
  return {};
}

template class SpeculativeTransaction<std::int64_t>;
template class SpeculativeTransaction<RowAcceptance>;

Result<SpeculativeTransaction<std::int64_t>> bind_cache_rollback(std::span<LayerState* const> caches) {
  std::vector<TransactionLayer<std::int64_t>> layers;
  for (LayerState* cache : caches) {
    RowSpeculativeState round = cache->round_functions();
    const int count = count_of(round);
    if (count != 0 && count != kAllFunctions) return incomplete_error();
    layers.push_back(layer_of(*cache, std::move(round)));
  }
  return bind_transaction<std::int64_t>(std::move(layers), is_count_of);
}

Result<SpeculativeTransaction<RowAcceptance>> bind_row_cache_rollback(std::span<LayerState* const> caches, std::int64_t rows) {
  CHECK(rows >= 0);
  std::vector<TransactionLayer<RowAcceptance>> layers;
  for (LayerState* cache : caches) {
    RowSpeculativeState round = cache->round_functions();
    if (count_of(round) != kAllFunctions) return incomplete_error();
    layers.push_back(row_layer_of(std::move(round), rows));
  }
  return bind_transaction<RowAcceptance>(std::move(layers), [rows](const RowAcceptance& accepted, std::int64_t drafts) {
    return std::cmp_equal(accepted.size(), rows) &&
           std::all_of(accepted.begin(), accepted.end(), [drafts](std::int64_t each) { return is_count_of(each, drafts); });
  });
}

}  // namespace linnet
