#include "backends/cpu/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "base/check.h"

namespace linnet::cpu {
namespace {

constexpr double kConversionRows = 20;     // reading and converting a key costs as much as this many query rows at it
constexpr int kItemsPerThread = 6;         // enough for queues to end at about the same time
constexpr std::int32_t kUnitRowsMin = 96;  // query rows below which cutting by rows costs more than it evens out
constexpr std::int32_t kCutRowsMax = 64;   // query rows up to which a unit may be cut by splits
constexpr std::size_t kPartialBytesMax = std::size_t{16} << 20;
constexpr std::int32_t kWriteTokens = 64;  // tokens that one thread writes at a time; whole blocks, so that no two share a line
constexpr std::int64_t kAloneTokens = 8;   // tokens up to which writing on one thread is quicker than a barrier

std::int32_t divide_up(std::int32_t a, std::int32_t b) { return (a + b - 1) / b; }

std::string known_head_dims() {
  std::string list;
  for (const std::int32_t dim : kAttentionHeadDims) list += (list.empty() ? "" : ", ") + std::to_string(dim);
  return list;
}

}  // namespace

Result<Attention> Attention::create(const AttentionOptions& options, const AttentionKernels& kernels, Pool& pool) {
  const KvLayout& layout = options.layout;
  CHECK(layout.layers > 0 && layout.kv_heads > 0 && options.heads > 0 && options.heads % layout.kv_heads == 0);
  CHECK(options.rows_max > 0 && options.tokens_max > 0 && options.context_max > 0 && kernels.kv_write != nullptr);
  if (kernels.attention.run == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "The model's head size is " + std::to_string(layout.head_dim) + "; the CPU backend offers " + known_head_dims() +
                     ". Use --backend mlx for this model.",
                 "model"};
  }
  Attention attention(options, kernels, pool.threads());
  LINNET_RETURN_IF_ERROR(attention.reserve(pool));
  return attention;
}

Attention::Attention(const AttentionOptions& options, const AttentionKernels& kernels, int threads)
    : options_(options), kernels_(kernels), group_(options.heads / options.layout.kv_heads), threads_(threads) {
  task_rows_max_ = attention_task_rows_max(options.layout.head_dim, group_);
  if (options_.scale == 0) options_.scale = 1.0F / std::sqrt(static_cast<float>(options.layout.head_dim));
  options_.scale *= 1.4426950408889634F;  // kernels take powers of two
}

std::size_t Attention::units_max() const {
  const std::int64_t query_rows = std::int64_t{options_.tokens_max} * group_;
  const std::int64_t pieces = 2 * std::int64_t{options_.rows_max} + query_rows / kUnitRowsMin + 2 * query_rows / task_rows_max_;
  return static_cast<std::size_t>(pieces * options_.layout.kv_heads);
}

Status Attention::reserve(Pool& pool) {
  const std::size_t rows = static_cast<std::size_t>(options_.rows_max);
  const std::size_t blocks = static_cast<std::size_t>(divide_up(options_.context_max, kBlockTokens));
  const std::size_t units = units_max();
  rows_.reserve(rows);
  block_table_.reserve(rows * blocks);
  units_.reserve(units);
  items_.reserve(units + static_cast<std::size_t>(2 * kItemsPerThread * threads_));
  write_items_.reserve(2 * rows + static_cast<std::size_t>(options_.tokens_max / kWriteTokens));
  open_parts_ = std::make_unique<std::atomic<std::int32_t>[]>(units);
  failed_ = std::make_unique<std::atomic<bool>[]>(rows);
  queue_ = std::make_unique<WorkQueue>();

  const std::size_t record = attention_partial_floats(options_.layout.head_dim) * sizeof(float);
  const std::size_t splits = static_cast<std::size_t>(divide_up(options_.context_max, kSplitTokens));
  const std::size_t cut_rows = static_cast<std::size_t>(kItemsPerThread * threads_ * kCutRowsMax / 2);
  const std::size_t partial_bytes = threads_ == 1 ? 0 : std::min(kPartialBytesMax / record, cut_rows * splits) * record;
  const std::size_t scratch_bytes = (kernels_.attention.scratch_bytes(group_) + 4095) / 4096 * 4096;
  LINNET_ASSIGN(region_,
                Region::reserve(partial_bytes + scratch_bytes * static_cast<std::size_t>(threads_), "attention's scratch"));
  (void)region_.touch(pool);
  Carver carver(region_.data());
  for (int i = 0; i < threads_; ++i) scratch_.push_back(carver.take<std::byte>(scratch_bytes));
  partials_ = {carver.take<float>(partial_bytes / sizeof(float)), partial_bytes / sizeof(float)};
  return {};
}

void Attention::plan(std::span<const AttentionRow> rows, std::span<std::byte* const> blocks) {
  CHECK(rows.size() <= static_cast<std::size_t>(options_.rows_max));
  rows_.clear();
  block_table_.clear();
  tokens_ = 0;
  for (const AttentionRow& row : rows) plan_row(row, blocks);
  CHECK(tokens_ <= options_.tokens_max);
  plan_writes();
  plan_units();
  plan_items();
}

void Attention::plan_row(const AttentionRow& row, std::span<std::byte* const> blocks) {
  const std::int32_t keys = row.position + row.count;
  const auto block_count = static_cast<std::size_t>(divide_up(keys, kBlockTokens));
  CHECK(row.position >= 0 && row.count > 0 && keys <= options_.context_max && row.token_begin >= 0);
  CHECK(block_count <= row.blocks.size());
  failed_[rows_.size()].store(false, std::memory_order_relaxed);
  // Within what is reserved, so the table does not move and pointers into it stay.
  CHECK(block_table_.size() + block_count <= block_table_.capacity());
  rows_.push_back({row.position, row.count, row.token_begin, block_table_.data() + block_table_.size()});
  for (const BlockId id : row.blocks.first(block_count)) {
    CHECK(index_of(id) < blocks.size());
    block_table_.push_back(blocks[index_of(id)]);
  }
  tokens_ += row.count;
}

void Attention::plan_writes() {
  write_items_.clear();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    for (std::int32_t first = 0; first < row.count;) {
      const std::int32_t room = kWriteTokens - (row.position + first) % kWriteTokens;
      const std::int32_t count = std::min(room, row.count - first);
      write_items_.push_back({static_cast<std::int32_t>(r), first, count});
      first += count;
    }
  }
}

// Of one KV head's share of tokens at `position` .. with all keys that they see, in keys times query rows.
double Attention::cost_of(std::int32_t position, std::int32_t count) const {
  const double mean_keys = position + (count + 1) / 2.0;
  return kConversionRows * (position + count) + mean_keys * count * group_;
}

// How many tokens of a row go into one unit. `fair`: the cost that an item should have at most.
std::int32_t Attention::tokens_of_unit(const Row& row, double cost, double fair) const {
  const std::int32_t query_rows = row.count * group_;
  const std::int32_t evened =
      std::min(static_cast<std::int32_t>(std::min(cost / fair, 1e6)) + 1, std::max(1, query_rows / kUnitRowsMin));
  const std::int32_t pieces = threads_ == 1 ? 1 : evened;
  const std::int32_t whole = 32 / std::gcd(32, group_);  // tokens that fill pairs of tiles
  std::int32_t most = task_rows_max_ / group_;
  if (most >= whole) most = most / whole * whole;
  return std::min(divide_up(divide_up(row.count, pieces), whole) * whole, most);
}

void Attention::plan_units() {
  units_.clear();
  double total = 0;
  for (const Row& row : rows_) total += cost_of(row.position, row.count) * options_.layout.kv_heads;
  const double fair = total / (kItemsPerThread * threads_);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    const std::int32_t tokens = tokens_of_unit(row, cost_of(row.position, row.count), fair);
    for (std::int32_t head = 0; head < options_.layout.kv_heads; ++head) {
      for (std::int32_t first = 0; first < row.count; first += tokens) {
        units_.push_back(
            {.row = static_cast<std::int32_t>(r), .first = first, .count = std::min(tokens, row.count - first), .kv_head = head});
      }
    }
  }
  CHECK(units_.size() <= units_max());
}

std::int32_t Attention::splits_of(const Unit& unit) const {
  return divide_up(rows_[static_cast<std::size_t>(unit.row)].position + unit.first + unit.count, kSplitTokens);
}

// Units that are too long for one item are cut by splits while there is room for partials; whether they are changes no bit.
void Attention::plan_items() {
  const auto cost_of_unit = [&](const Unit& unit) {
    return cost_of(rows_[static_cast<std::size_t>(unit.row)].position + unit.first, unit.count);
  };
  double total = 0;
  for (const Unit& unit : units_) total += cost_of_unit(unit);
  const double fair = total / (kItemsPerThread * threads_);
  const std::size_t record = attention_partial_floats(options_.layout.head_dim);
  std::size_t partials_used = 0;
  items_.clear();
  for (std::size_t u = 0; u < units_.size(); ++u) {
    Unit& unit = units_[u];
    const double cost = cost_of_unit(unit);
    const std::int32_t splits = splits_of(unit);
    const std::size_t floats = static_cast<std::size_t>(splits) * static_cast<std::size_t>(unit.count * group_) * record;
    if (threads_ > 1 && cost > fair && splits > 1 && unit.count * group_ <= kCutRowsMax &&
        floats <= partials_.size() - partials_used) {
      unit.parts = std::min(splits, static_cast<std::int32_t>(cost / fair) + 1);
      unit.partials = partials_.data() + partials_used;
      partials_used += floats;
    }
    open_parts_[u].store(unit.parts, std::memory_order_relaxed);
    for (std::int32_t part = 0; part < unit.parts; ++part) {
      items_.push_back({.unit = static_cast<std::int32_t>(u),
                        .split_begin = splits * part / unit.parts,
                        .split_end = splits * (part + 1) / unit.parts,
                        .cost = cost / unit.parts});
    }
  }
  std::sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) {
    return a.cost != b.cost ? a.cost > b.cost : std::pair(a.unit, a.split_begin) < std::pair(b.unit, b.split_begin);
  });
}

AttentionTask Attention::task_of(const Unit& unit, std::int32_t layer, ConstTokenMatrix q, TokenMatrix out) const {
  const Row& row = rows_[static_cast<std::size_t>(unit.row)];
  const std::ptrdiff_t token = row.token_begin + unit.first;
  const std::ptrdiff_t column = std::ptrdiff_t{unit.kv_head} * group_ * options_.layout.head_dim;
  return {.q = q.data + token * q.stride + column,
          .q_stride = q.stride,
          .out = out.data + token * out.stride + column,
          .out_stride = out.stride,
          .blocks = row.blocks,
          .k_offset = options_.layout.offset(layer, unit.kv_head),
          .position = row.position + unit.first,
          .rows = unit.count,
          .group = group_,
          .scale = options_.scale,
          .split_begin = 0,
          .split_end = splits_of(unit),
          .partials = unit.partials};
}

void Attention::run_item(const Item& item, const AttentionTask& whole, int thread) {
  AttentionTask task = whole;
  task.split_begin = item.split_begin;
  task.split_end = item.split_end;
  kernels_.attention.run(task, scratch_[static_cast<std::size_t>(thread)]);
  if (task.partials == nullptr) return;
  std::atomic<std::int32_t>& open = open_parts_[static_cast<std::size_t>(item.unit)];
  if (open.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  open.store(units_[static_cast<std::size_t>(item.unit)].parts, std::memory_order_relaxed);  // for the next layer
  kernels_.attention.merge(whole);
}

void Attention::run(Pool& pool, std::int32_t layer, ConstTokenMatrix q, TokenMatrix out) {
  CHECK(pool.threads() == threads_ && layer >= 0 && layer < options_.layout.layers);
  queue_->reset(static_cast<std::int64_t>(items_.size()));
  pool.run([&](int thread, int) {
    std::int64_t at = 0;
    std::int64_t end = 0;
    while (queue_->take(at, end)) {
      const Item& item = items_[static_cast<std::size_t>(at)];
      run_item(item, task_of(units_[static_cast<std::size_t>(item.unit)], layer, q, out), thread);
    }
  });
}

void Attention::write_item(const WriteItem& item, std::int32_t layer, ConstTokenMatrix k, ConstTokenMatrix v) {
  const Row& row = rows_[static_cast<std::size_t>(item.row)];
  const std::ptrdiff_t token = row.token_begin + item.first;
  const bool finite = kernels_.kv_write({.k = k.data + token * k.stride,
                                         .k_stride = k.stride,
                                         .v = v.data + token * v.stride,
                                         .v_stride = v.stride,
                                         .blocks = row.blocks,
                                         .layer_offset = options_.layout.offset(layer, 0),
                                         .kv_heads = options_.layout.kv_heads,
                                         .head_dim = options_.layout.head_dim,
                                         .position = row.position + item.first,
                                         .count = item.count});
  if (!finite) failed_[static_cast<std::size_t>(item.row)].store(true, std::memory_order_relaxed);
}

void Attention::write(Pool& pool, std::int32_t layer, ConstTokenMatrix k, ConstTokenMatrix v) {
  CHECK(pool.threads() == threads_ && layer >= 0 && layer < options_.layout.layers);
  if (tokens_ <= kAloneTokens || threads_ == 1) {
    for (const WriteItem& item : write_items_) write_item(item, layer, k, v);
    return;
  }
  queue_->reset(static_cast<std::int64_t>(write_items_.size()));
  pool.run([&](int, int) {
    std::int64_t at = 0;
    std::int64_t end = 0;
    while (queue_->take(at, end)) write_item(write_items_[static_cast<std::size_t>(at)], layer, k, v);
  });
}

bool Attention::row_failed(std::int32_t row) const {
  CHECK(row >= 0 && static_cast<std::size_t>(row) < rows_.size());
  return failed_[static_cast<std::size_t>(row)].load(std::memory_order_relaxed);
}

}  // namespace linnet::cpu
