// One token history with KV, as the scheduler sees it: four lengths, the tokens, the blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace linnet {

// Lengths in tokens. cached: KV that came from a cache; computed: KV that exists; known: prompt and answer so far, the pending
// token included; limit: where the answer ends at the latest.
// Engine's thread only.
// Invariants: 1. cached <= computed <= known <= limit and 1 <= prompt <= known. 2. computed < known between steps: there is
// always an input to compute, the last token's logits being what the next one is sampled from. 3. Nothing allocates after
// construction.
class Sequence {
 public:
  // `prompt` is not empty; `limit` >= its length.
  Sequence(SequenceId id, std::vector<TokenId> prompt, std::int32_t limit);

  SequenceId id() const { return id_; }
  std::int32_t prompt() const { return prompt_; }
  std::int32_t cached() const { return cached_; }
  std::int32_t computed() const { return computed_; }
  std::int32_t known() const { return static_cast<std::int32_t>(tokens_.size()); }
  std::int32_t limit() const { return limit_; }

  std::int32_t generated() const { return known() - prompt_; }
  std::int32_t uncomputed() const { return known() - computed_; }
  // A decode row feeds its pending token; everything longer is prefill and may be cut into chunks.
  bool decoding() const { return generated() > 0 && uncomputed() == 1; }
  bool at_limit() const { return known() == limit_; }

  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const BlockId> block_table() const { return block_table_; }
  // The step in which it was last given tokens; 0: never. Rows that waited longest go first when not all find room.
  std::uint64_t last_step() const { return last_step_; }

  // Nothing is computed yet: the KV of the first `count` < known() tokens is there already.
  void begin_at(std::int32_t count);
  void set_block_table(std::span<const BlockId> blocks) { block_table_.assign(blocks.begin(), blocks.end()); }
  // `count` >= 1 further inputs were computed in `step`. If they reached the last known token, its successor must be appended
  // before the next call.
  void advance(std::int32_t count, std::uint64_t step);
  void append(TokenId token);

 private:
  void check_lengths() const;

  SequenceId id_;
  std::vector<TokenId> tokens_;  // capacity limit_
  std::vector<BlockId> block_table_;
  std::int32_t prompt_;
  std::int32_t cached_ = 0;
  std::int32_t computed_ = 0;
  std::int32_t limit_;
  std::uint64_t last_step_ = 0;
};

}  // namespace linnet
