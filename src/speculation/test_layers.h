// Layer states for tests, one for each way of holding the past. Small, slow and complete: each can be compared with one that was
// fed the same tokens from nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "linnet/ids.h"
#include "speculation/layer_state.h"

namespace linnet {

// Blocks that are out, and the call that fails. Shared by the layers of one group.
struct TestGroup {
  std::int64_t blocks_out = 0;
  std::int64_t calls = 0;               // of round functions and trim
  std::optional<std::int64_t> failing;  // the call that fails, from 1 on

  Status call(const char* what);
};

class TestLayer : public LayerState {
 public:
  TestLayer(TestGroup& group, std::size_t rows) : group_(group), rows_(rows) {}

  // The row's next token.
  virtual void write(std::size_t row, TokenId token) = 0;
  // Everything that a later token could see of the row's past.
  virtual std::vector<std::int64_t> seen(std::size_t row) const = 0;
  // The same kind, empty.
  virtual std::unique_ptr<TestLayer> fresh(TestGroup& group, std::size_t rows) const = 0;
  virtual std::string name() const = 0;

  bool can_trim() const override { return false; }
  Status trim(std::int64_t count) override;

 protected:
  // The three round functions over the members below.
  RowSpeculativeState guarded_round();
  virtual void begin_round() {}
  virtual void commit_round() {}
  virtual void keep_of_round(std::size_t row, std::int64_t keep);

  TestGroup& group_;
  std::size_t rows_;
};

std::unique_ptr<TestLayer> make_block_layer(TestGroup& group, std::size_t rows);       // KV in blocks; undo is a length
std::unique_ptr<TestLayer> make_window_layer(TestGroup& group, std::size_t rows);      // the last tokens, and slack for a window
std::unique_ptr<TestLayer> make_quantized_layer(TestGroup& group, std::size_t rows);   // full groups lose their exact values
std::unique_ptr<TestLayer> make_recurrent_layer(TestGroup& group, std::size_t rows);   // one state for the whole past
std::unique_ptr<TestLayer> make_contiguous_layer(TestGroup& group, std::size_t rows);  // one row; only trims
std::unique_ptr<TestLayer> make_ring_layer(TestGroup& group, std::size_t rows);        // one row; only trims, until it is full

// The layers as binding wants them.
std::vector<LayerState*> pointers_to(const std::vector<std::unique_ptr<TestLayer>>& layers);

}  // namespace linnet
