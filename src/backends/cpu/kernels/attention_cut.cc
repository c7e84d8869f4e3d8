#include "backends/cpu/kernels/attention_cut.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace linnet::cpu {
namespace {

constexpr double kConversionRows = 20;     // reading and converting a key costs as much as this many query rows at it
constexpr int kItemsPerThread = 6;         // enough for queues to end at about the same time
constexpr std::int32_t kUnitRowsMin = 96;  // query rows below which cutting by rows costs more than it evens out
constexpr std::int32_t kCutRowsMax = 64;   // query rows up to which a unit may be cut by splits
constexpr std::size_t kPartialBytesMax = std::size_t{16} << 20;

std::int32_t divide_up(std::int32_t a, std::int32_t b) { return (a + b - 1) / b; }

}  // namespace

AttentionCut::AttentionCut(const AttentionShape& shape)
    : shape_(shape), task_rows_max_(attention_task_rows_max(shape.head_dim, shape.group)) {
  const std::size_t units = units_max();
  units_.reserve(units);
  items_.reserve(units + static_cast<std::size_t>(2 * kItemsPerThread * shape.threads));
  open_parts_ = std::make_unique<std::atomic<std::int32_t>[]>(units);
}

std::size_t AttentionCut::partial_floats(const AttentionShape& shape, std::int32_t context_max) {
  if (shape.threads == 1) return 0;
  const std::size_t record = attention_partial_floats(shape.head_dim);
  const auto splits = static_cast<std::size_t>(divide_up(context_max, kSplitTokens));
  const auto cut_rows = static_cast<std::size_t>(kItemsPerThread * shape.threads * kCutRowsMax / 2);
  return std::min(kPartialBytesMax / (record * sizeof(float)), cut_rows * splits) * record;
}

std::size_t AttentionCut::units_max() const {
  const std::int64_t query_rows = std::int64_t{shape_.tokens_max} * shape_.group;
  const std::int64_t pieces = 2 * std::int64_t{shape_.rows_max} + query_rows / kUnitRowsMin + 2 * query_rows / task_rows_max_;
  return static_cast<std::size_t>(pieces * shape_.kv_heads);
}

std::int32_t AttentionCut::first_key(std::int32_t position) const {
  return window_ == 0 ? 0 : std::max(0, position + 1 - window_);
}

// Of one KV head's share of tokens at `position` .. with all keys that they see, in keys times query rows.
double AttentionCut::cost_of(std::int32_t position, std::int32_t count) const {
  const double keys = position + count - first_key(position);
  const double mean_keys = std::min(position + (count + 1) / 2.0, window_ == 0 ? keys : static_cast<double>(window_));
  return kConversionRows * keys + mean_keys * count * shape_.group;
}

double AttentionCut::cost_of(const AttentionUnit& unit) const {
  return cost_of(rows_[static_cast<std::size_t>(unit.row)].position + unit.first, unit.count);
}

// How many tokens of a row go into one unit. `fair`: the cost that an item should have at most.
std::int32_t AttentionCut::tokens_of_unit(const AttentionPiece& row, double fair) const {
  const std::int32_t query_rows = row.count * shape_.group;
  const auto wanted = static_cast<std::int32_t>(std::min(cost_of(row.position, row.count) / fair, 1e6)) + 1;
  const std::int32_t pieces = shape_.threads == 1 ? 1 : std::min(wanted, std::max(1, query_rows / kUnitRowsMin));
  const std::int32_t whole = 32 / std::gcd(32, shape_.group);  // tokens that fill pairs of tiles
  std::int32_t most = task_rows_max_ / shape_.group;
  if (most >= whole) most = most / whole * whole;
  return std::min(divide_up(divide_up(row.count, pieces), whole) * whole, most);
}

void AttentionCut::make_units(double fair) {
  units_.clear();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const AttentionPiece& row = rows_[r];
    const std::int32_t tokens = tokens_of_unit(row, fair);
    for (std::int32_t head = 0; head < shape_.kv_heads; ++head) {
      for (std::int32_t first = 0; first < row.count; first += tokens) {
        const std::int32_t count = std::min(tokens, row.count - first);
        units_.push_back({.row = static_cast<std::int32_t>(r),
                          .first = first,
                          .count = count,
                          .kv_head = head,
                          .split_begin = first_key(row.position + first) / kSplitTokens,
                          .split_end = divide_up(row.position + first + count, kSplitTokens)});
      }
    }
  }
  CHECK(units_.size() <= units_max());
}

// A unit that is too long for one item is cut by splits if there is room for partials.
void AttentionCut::cut_unit(AttentionUnit& unit, double fair, std::span<float>& partials) const {
  const double cost = cost_of(unit);
  const std::int32_t splits = unit.split_end - unit.split_begin;
  const std::int32_t query_rows = unit.count * shape_.group;
  const std::size_t floats =
      static_cast<std::size_t>(splits) * static_cast<std::size_t>(query_rows) * attention_partial_floats(shape_.head_dim);
  if (shape_.threads == 1 || cost <= fair || splits == 1 || query_rows > kCutRowsMax || floats > partials.size()) return;
  unit.parts = std::min(splits, static_cast<std::int32_t>(cost / fair) + 1);
  unit.partials = partials.data();
  partials = partials.subspan(floats);
}

void AttentionCut::make(std::span<const AttentionPiece> rows, std::int32_t window, std::span<float> partials) {
  rows_ = rows;
  window_ = window;
  const int items = kItemsPerThread * shape_.threads;
  double total = 0;
  for (const AttentionPiece& row : rows) total += cost_of(row.position, row.count) * shape_.kv_heads;
  make_units(total / items);
  total = 0;
  for (const AttentionUnit& unit : units_) total += cost_of(unit);
  items_.clear();
  for (std::size_t u = 0; u < units_.size(); ++u) {
    AttentionUnit& unit = units_[u];
    cut_unit(unit, total / items, partials);
    open_parts_[u].store(unit.parts, std::memory_order_relaxed);
    const std::int32_t splits = unit.split_end - unit.split_begin;
    for (std::int32_t part = 0; part < unit.parts; ++part) {
      items_.push_back({.unit = static_cast<std::int32_t>(u),
                        .split_begin = unit.split_begin + splits * part / unit.parts,
                        .split_end = unit.split_begin + splits * (part + 1) / unit.parts,
                        .cost = cost_of(unit) / unit.parts});
    }
  }
  std::sort(items_.begin(), items_.end(), [](const AttentionItem& a, const AttentionItem& b) {
    return a.cost != b.cost ? a.cost > b.cost : std::pair(a.unit, a.split_begin) < std::pair(b.unit, b.split_begin);
  });
}

bool AttentionCut::finish_part(const AttentionItem& item) {
  std::atomic<std::int32_t>& open = open_parts_[static_cast<std::size_t>(item.unit)];
  if (open.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  open.store(unit_of(item).parts, std::memory_order_relaxed);
  return true;
}

}  // namespace linnet::cpu
