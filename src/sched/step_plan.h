// One step's work, as the control plane asks for it: token ids, lengths and block ids, no tensors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace linnet {

// One row's share of a step: `inputs` are fed at positions position .. position + inputs.size() - 1; then logits of the last
// `samples` inputs are turned into tokens. A prompt's chunk that is not its last has samples = 0; a decode row with k drafts is a
// verify row of k + 1 inputs and k + 1 samples (k = 0: plain decode).
struct RowPlan {
  SequenceId sequence{};
  std::int32_t position = 0;      // tokens of this sequence whose KV exists
  std::int32_t samples = 0;       // 0 .. inputs
  std::uint64_t sample_step = 0;  // index in the answer of the first token to be sampled; with the seed, its random number
  std::int32_t input_begin = 0;   // into StepPlan::tokens
  std::int32_t input_count = 0;   // >= 1
  std::int32_t block_begin = 0;   // into StepPlan::blocks
  std::int32_t block_count = 0;   // covers position + input_count tokens

  bool operator==(const RowPlan&) const = default;
};

// A sequence that begins as another: `to` has the KV of the first `tokens` tokens of `from`. Their tables share the whole blocks;
// where the tokens end inside a block, a BlockCopy goes with it. For backends that keep KV by sequence.
struct SequenceClone {
  SequenceId from{};
  SequenceId to{};
  std::int32_t tokens = 0;

  bool operator==(const SequenceClone&) const = default;
};

// `to` becomes what `from` is: the beginning of `sequence` lies there.
struct BlockCopy {
  SequenceId sequence{};
  BlockId from{};
  BlockId to{};

  bool operator==(const BlockCopy&) const = default;
};

// Flat, so that a plan reused from step to step allocates nothing after warm-up.
struct StepPlan {
  std::vector<SequenceClone> clones;  // made in this order, before any row
  std::vector<BlockCopy> copies;      // the same
  std::vector<RowPlan> rows;
  std::vector<TokenId> tokens;
  std::vector<BlockId> blocks;

  std::span<const TokenId> inputs(const RowPlan& row) const {
    return std::span(tokens).subspan(static_cast<std::size_t>(row.input_begin), static_cast<std::size_t>(row.input_count));
  }
  std::span<const BlockId> block_table(const RowPlan& row) const {
    return std::span(blocks).subspan(static_cast<std::size_t>(row.block_begin), static_cast<std::size_t>(row.block_count));
  }
  // Whether the beginning of `sequence` is to be cloned or copied.
  bool begins(SequenceId sequence) const {
    return std::any_of(clones.begin(), clones.end(), [=](const SequenceClone& clone) { return clone.to == sequence; }) ||
           std::any_of(copies.begin(), copies.end(), [=](const BlockCopy& copy) { return copy.sequence == sequence; });
  }
  void clear() {
    clones.clear();
    copies.clear();
    rows.clear();
    tokens.clear();
    blocks.clear();
  }
  bool empty() const { return rows.empty(); }
  bool operator==(const StepPlan&) const = default;
};

}  // namespace linnet
