// Cuts a step's attention with one window into items that occupy all threads, whatever its rows are.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/kernels/attention_kernel.h"

namespace linnet::cpu {

// A row of the step: `count` tokens at positions position .., their inputs from `token_begin` in the step's [T, ...] matrices.
struct AttentionPiece {
  std::int32_t position = 0;
  std::int32_t count = 0;
  std::int32_t token_begin = 0;
  std::byte* const* blocks = nullptr;  // the sequence's, from position 0
};

// Some tokens of a row with one KV head: what one thread could do alone.
struct AttentionUnit {
  std::int32_t row = 0;
  std::int32_t first = 0;  // token of the row
  std::int32_t count = 0;
  std::int32_t kv_head = 0;
  std::int32_t split_begin = 0;  // splits in which it sees keys
  std::int32_t split_end = 0;
  std::int32_t parts = 1;     // items that it is cut into, by splits
  float* partials = nullptr;  // if parts > 1
};

struct AttentionItem {
  std::int32_t unit = 0;
  std::int32_t split_begin = 0;
  std::int32_t split_end = 0;
  double cost = 0;
};

struct AttentionShape {
  std::int32_t kv_heads = 0;
  std::int32_t group = 0;  // heads / KV heads
  std::int32_t head_dim = 0;
  int threads = 1;
  std::int32_t rows_max = 0;    // of a step
  std::int32_t tokens_max = 0;  // of a step
};

// Belongs to an Attention. Nothing allocates after construction. How the cut falls changes no bit.
class AttentionCut {
 public:
  explicit AttentionCut(const AttentionShape& shape);

  // `partials` is for units that are cut by splits; what does not fit is not cut.
  void make(std::span<const AttentionPiece> rows, std::int32_t window, std::span<float> partials);

  std::int32_t window() const { return window_; }
  std::span<const AttentionItem> items() const { return items_; }  // the longest first
  const AttentionUnit& unit_of(const AttentionItem& item) const { return units_[static_cast<std::size_t>(item.unit)]; }
  // Counts a part of a unit as done; true for its last one, which also makes the count ready for the next layer.
  bool finish_part(const AttentionItem& item);

  // Floats of partials that are worth having for sequences of `context_max` tokens.
  static std::size_t partial_floats(const AttentionShape& shape, std::int32_t context_max);

 private:
  std::size_t units_max() const;
  std::int32_t first_key(std::int32_t position) const;
  double cost_of(std::int32_t position, std::int32_t count) const;
  double cost_of(const AttentionUnit& unit) const;
  std::int32_t tokens_of_unit(const AttentionPiece& row, double fair) const;
  void make_units(double fair);
  void cut_unit(AttentionUnit& unit, double fair, std::span<float>& partials) const;

  AttentionShape shape_;
  std::int32_t task_rows_max_;
  std::int32_t window_ = 0;
  std::span<const AttentionPiece> rows_;
  std::vector<AttentionUnit> units_;
  std::vector<AttentionItem> items_;
  std::unique_ptr<std::atomic<std::int32_t>[]> open_parts_;  // [units] items not yet done
};

}  // namespace linnet::cpu
