#include "backends/cpu/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"

namespace linnet::cpu {
namespace {

constexpr float kLog2E = 1.4426950408889634F;
// Tokens that one thread writes at a time: whole blocks, so that no two share a line.
constexpr std::int32_t kWriteTokens = kBlockTokens;
constexpr std::int64_t kAloneTokens = 8;  // tokens up to which writing on one thread is quicker than a barrier

std::int32_t divide_up(std::int32_t a, std::int32_t b) { return (a + b - 1) / b; }

std::string known_head_dims() {
  std::string list;
  for (const std::int32_t dim : kAttentionHeadDims) list += (list.empty() ? "" : ", ") + std::to_string(dim);
  return list;
}

}  // namespace

Result<Attention> Attention::create(const AttentionOptions& options, const AttentionKernels& kernels, Pool& pool) {
  LINNET_RETURN_IF_ERROR(memory_bytes(options, kernels, pool.threads()));
  Attention attention(options, kernels, pool.threads());
  LINNET_RETURN_IF_ERROR(attention.reserve(pool));
  return attention;
}

Result<std::size_t> Attention::memory_bytes(const AttentionOptions& options, const AttentionKernels& kernels, int threads) {
  const KvLayout& layout = options.layout;
  CHECK(layout.layers > 0 && layout.kv_heads > 0 && options.heads > 0 && options.heads % layout.kv_heads == 0);
  CHECK(options.rows_max > 0 && options.tokens_max > 0 && options.context_max > 0 && kernels.kv_write != nullptr);
  if (kernels.attention.run == nullptr) {
    return Error{ErrorCode::kUnsupported,
                 "The model's head size is " + std::to_string(layout.head_dim) + "; the CPU backend offers " + known_head_dims() +
                     ". Use --backend mlx for this model.",
                 "model"};
  }
  const ScratchBytes bytes = Attention(options, kernels, threads).scratch_bytes();
  return Region::size_of(bytes.partials + bytes.of_thread * static_cast<std::size_t>(threads));
}

Attention::Attention(const AttentionOptions& options, const AttentionKernels& kernels, int threads)
    : options_(options),
      kernels_(kernels),
      shape_{.kv_heads = options.layout.kv_heads,
             .group = options.heads / options.layout.kv_heads,
             .head_dim = options.layout.head_dim,
             .threads = threads,
             .rows_max = options.rows_max,
             .tokens_max = options.tokens_max} {}

Attention::ScratchBytes Attention::scratch_bytes() const {
  return {.partials = AttentionCut::partial_floats(shape_, options_.context_max) * sizeof(float),
          .of_thread = (kernels_.attention.scratch_bytes(shape_.group) + 4095) / 4096 * 4096};
}

Status Attention::reserve(Pool& pool) {
  const std::size_t rows = static_cast<std::size_t>(options_.rows_max);
  const std::size_t blocks = static_cast<std::size_t>(divide_up(options_.context_max, kBlockTokens));
  const auto threads = static_cast<std::size_t>(shape_.threads);
  rows_.reserve(rows);
  block_table_.reserve(rows * blocks);
  for (std::size_t i = 0; i < kWindowsMax; ++i) cuts_.emplace_back(shape_);
  write_items_.reserve(2 * rows + static_cast<std::size_t>(options_.tokens_max / kWriteTokens));
  failed_ = std::make_unique<std::atomic<bool>[]>(rows);

  const ScratchBytes bytes = scratch_bytes();
  LINNET_ASSIGN(region_, Region::reserve(bytes.partials + bytes.of_thread * threads, "attention's scratch"));
  (void)region_.touch(pool);
  Carver carver(region_.data());
  for (std::size_t i = 0; i < threads; ++i) scratch_.push_back(carver.take<std::byte>(bytes.of_thread));
  partials_ = {carver.take<float>(bytes.partials / sizeof(float)), bytes.partials / sizeof(float)};
  return {};
}

void Attention::plan(std::span<const AttentionRow> rows, std::span<std::byte* const> blocks) {
  CHECK(rows.size() <= static_cast<std::size_t>(options_.rows_max));
  rows_.clear();
  block_table_.clear();
  tokens_ = 0;
  for (const AttentionRow& row : rows) plan_row(row, blocks);
  CHECK(tokens_ <= options_.tokens_max);
  cuts_made_ = 0;
  plan_writes();
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
    const AttentionPiece& row = rows_[r];
    for (std::int32_t first = 0; first < row.count;) {
      const std::int32_t room = kWriteTokens - (row.position + first) % kWriteTokens;
      const std::int32_t count = std::min(room, row.count - first);
      write_items_.push_back({static_cast<std::int32_t>(r), first, row.token_begin + first, count});
      first += count;
    }
  }
}

AttentionCut& Attention::cut_of(std::int32_t window) {
  for (std::size_t i = 0; i < cuts_made_; ++i) {
    if (cuts_[i].window() == window) return cuts_[i];
  }
  CHECK(cuts_made_ < kWindowsMax);
  AttentionCut& cut = cuts_[cuts_made_++];
  cut.make(rows_, window, partials_);
  return cut;
}

AttentionTask Attention::task_of(const AttentionUnit& unit, const AttentionCall& call, ConstTokenMatrix q,
                                 TokenMatrix out) const {
  const AttentionPiece& row = rows_[static_cast<std::size_t>(unit.row)];
  const std::ptrdiff_t token = row.token_begin + unit.first;
  const std::ptrdiff_t column = std::ptrdiff_t{unit.kv_head} * shape_.group * shape_.head_dim;
  const float scale = call.scale != 0 ? call.scale : 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
  return {.q = q.data + token * q.stride + column,
          .q_stride = q.stride,
          .out = out.data + token * out.stride + column,
          .out_stride = out.stride,
          .blocks = row.blocks,
          .k_offset = options_.layout.offset(call.layer, unit.kv_head),
          .position = row.position + unit.first,
          .window = call.window,
          .rows = unit.count,
          .group = shape_.group,
          .scale = call.soft_cap == 0 ? scale * kLog2E : scale / call.soft_cap,
          .cap = call.soft_cap * kLog2E,
          .split_begin = unit.split_begin,
          .split_end = unit.split_end,
          .partials = unit.partials,
          .partials_begin = unit.split_begin};
}

void Attention::run_item(AttentionCut& cut, const AttentionItem& item, const AttentionTask& whole, int thread) {
  AttentionTask task = whole;
  task.split_begin = item.split_begin;
  task.split_end = item.split_end;
  kernels_.attention.run(task, scratch_[static_cast<std::size_t>(thread)]);
  if (task.partials != nullptr && cut.finish_part(item)) kernels_.attention.merge(whole);
}

void Attention::run(Pool& pool, const AttentionCall& call, ConstTokenMatrix q, TokenMatrix out) {
  CHECK(pool.threads() == shape_.threads && call.layer >= 0 && call.layer < options_.layout.layers);
  CHECK(call.window >= 0 && call.soft_cap >= 0);
  AttentionCut& cut = cut_of(call.window);
  pool.deal(static_cast<std::int64_t>(cut.items().size()), [&](int thread, WorkQueue& pieces) {
    for (std::int64_t at = 0, end = 0; pieces.take(at, end);) {
      const AttentionItem& item = cut.items()[static_cast<std::size_t>(at)];
      run_item(cut, item, task_of(cut.unit_of(item), call, q, out), thread);
    }
  });
}

int Attention::write_pieces() const { return tokens_ <= kAloneTokens ? 1 : static_cast<int>(write_items_.size()); }

void Attention::write_item(const WriteItem& item, std::int32_t layer, ConstTokenMatrix k, ConstTokenMatrix v) {
  const AttentionPiece& row = rows_[static_cast<std::size_t>(item.row)];
  const std::ptrdiff_t token = item.token_begin;
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

bool Attention::row_failed(std::int32_t row) const {
  CHECK(row >= 0 && static_cast<std::size_t>(row) < rows_.size());
  return failed_[static_cast<std::size_t>(row)].load(std::memory_order_relaxed);
}

}  // namespace linnet::cpu
