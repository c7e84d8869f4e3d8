// KV blocks as the control plane sees them: numbers with counts of who holds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"

namespace linnet {

class BlockPool;

// Move-only lease of blocks, in the order in which they were taken; its destructor gives them back. The pool outlives it.
class BlockRun {
 public:
  BlockRun() = default;
  BlockRun(BlockRun&& other) noexcept;
  BlockRun& operator=(BlockRun&& other) noexcept;
  ~BlockRun() { release(); }

  std::span<const BlockId> ids() const { return ids_; }
  std::int32_t size() const { return static_cast<std::int32_t>(ids_.size()); }
  bool empty() const { return ids_.empty(); }
  // A further lease of the first `count` <= size() blocks.
  BlockRun share(std::int32_t count) const;
  // Appends the blocks of `other`, of the same pool.
  void append(BlockRun&& other);
  // Gives the first `count` <= size() blocks back.
  void drop_first(std::int32_t count);
  // Appending to this many blocks allocates nothing.
  void reserve(std::int32_t count) { ids_.reserve(static_cast<std::size_t>(count)); }
  void release();

 private:
  friend class BlockPool;
  BlockPool* pool_ = nullptr;
  std::vector<BlockId> ids_;
};

// Blocks 0 .. size() - 1. Engine's thread only.
// Invariants: 1. A block is free if and only if nobody holds it. 2. available() + held blocks = size(). 3. No lease outlives the
// pool.
class BlockPool {
 public:
  explicit BlockPool(std::int32_t block_count);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  // `count` >= 0 free blocks, or nothing if fewer are free.
  std::optional<BlockRun> take(std::int32_t count);
  // A lease of blocks that are held already.
  BlockRun share(std::span<const BlockId> blocks);

  // One more holder of a held block, or one less.
  void hold(BlockId block);
  void let_go(BlockId block);
  std::int32_t holders(BlockId block) const { return holders_[index_of(block)]; }

  std::int32_t size() const { return static_cast<std::int32_t>(holders_.size()); }
  std::int32_t available() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t used() const { return size() - available(); }

 private:
  std::vector<std::int32_t> holders_;  // of each block
  std::vector<BlockId> free_;          // the next one last; most recently returned ones go first
};

}  // namespace linnet
