// KV blocks as the control plane sees them: numbers that are free or leased.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace linnet {

class BlockPool;

// Move-only lease of blocks, in the order in which they were taken; its destructor gives them back. The pool outlives it.
class BlockRun {
 public:
  class Iterator {
   public:
    using value_type = BlockId;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    BlockId operator*() const { return BlockId{block_}; }
    Iterator& operator++();
    Iterator operator++(int);
    bool operator==(const Iterator& other) const { return block_ == other.block_; }

   private:
    friend class BlockRun;
    Iterator(const BlockPool* pool, std::uint32_t block) : pool_(pool), block_(block) {}
    const BlockPool* pool_ = nullptr;
    std::uint32_t block_ = 0;
  };

  BlockRun() = default;
  BlockRun(BlockRun&& other) noexcept;
  BlockRun& operator=(BlockRun&& other) noexcept;
  ~BlockRun() { release(); }

  std::int32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Iterator begin() const;
  Iterator end() const;
  // Appends the blocks of `other`, of the same pool.
  void append(BlockRun&& other);
  void release();

 private:
  friend class BlockPool;
  BlockPool* pool_ = nullptr;
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
  std::int32_t size_ = 0;
};

// Blocks 0 .. size() - 1. Engine's thread only. Nothing allocates after construction: runs are chains through one array.
// Invariants: 1. Every block is free or in exactly one run. 2. available() + the sizes of all runs = size().
// 3. No run outlives the pool.
class BlockPool {
 public:
  explicit BlockPool(std::int32_t block_count);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool();

  // `count` >= 0 blocks, or nothing if fewer are free.
  std::optional<BlockRun> take(std::int32_t count);

  std::int32_t size() const { return static_cast<std::int32_t>(next_.size()); }
  std::int32_t available() const { return available_; }
  std::int32_t used() const { return size() - available_; }

 private:
  friend class BlockRun;
  friend class BlockRun::Iterator;
  void give_back(std::uint32_t first, std::uint32_t last, std::int32_t count);

  std::vector<std::uint32_t> next_;  // chain of a run, or of the free blocks
  std::vector<bool> leased_;
  std::uint32_t free_ = 0;  // most recently returned first
  std::int32_t available_ = 0;
};

static_assert(std::forward_iterator<BlockRun::Iterator>);

}  // namespace linnet
