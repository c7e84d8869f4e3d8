#include "cache/block_pool.h"

#include <utility>

#include "base/check.h"

namespace linnet {

BlockRun::BlockRun(BlockRun&& other) noexcept : pool_(other.pool_), ids_(std::exchange(other.ids_, {})) {}

BlockRun& BlockRun::operator=(BlockRun&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = other.pool_;
  ids_ = std::exchange(other.ids_, {});
  return *this;
}

BlockRun BlockRun::share(std::int32_t count) const {
  CHECK(count >= 0 && count <= size());
  if (count == 0) return {};
  return pool_->share(ids().first(static_cast<std::size_t>(count)));
}

void BlockRun::append(BlockRun&& other) {
  if (other.empty()) return;
  CHECK(empty() || pool_ == other.pool_);
  pool_ = other.pool_;
  ids_.insert(ids_.end(), other.ids_.begin(), other.ids_.end());
  other.ids_.clear();
}

void BlockRun::drop_first(std::int32_t count) {
  CHECK(count >= 0 && count <= size());
  for (std::int32_t index = 0; index < count; ++index) pool_->let_go(ids_[static_cast<std::size_t>(index)]);
  ids_.erase(ids_.begin(), ids_.begin() + count);
}

void BlockRun::release() {
  for (const BlockId block : ids_) pool_->let_go(block);
  ids_.clear();
}

BlockPool::BlockPool(std::int32_t block_count) {
  CHECK(block_count >= 0);
  holders_.resize(static_cast<std::size_t>(block_count));
  free_.reserve(holders_.size());
  for (std::int32_t block = block_count; block-- > 0;) free_.push_back(static_cast<BlockId>(block));
}

BlockPool::~BlockPool() { CHECK(available() == size()); }

std::optional<BlockRun> BlockPool::take(std::int32_t count) {
  CHECK(count >= 0);
  if (count > available()) return std::nullopt;
  BlockRun run;
  run.pool_ = this;
  run.reserve(count);
  for (std::int32_t taken = 0; taken < count; ++taken) {
    run.ids_.push_back(free_.back());
    free_.pop_back();
    CHECK(std::exchange(holders_[index_of(run.ids_.back())], 1) == 0);
  }
  return run;
}

BlockRun BlockPool::share(std::span<const BlockId> blocks) {
  BlockRun run;
  run.pool_ = this;
  run.ids_.assign(blocks.begin(), blocks.end());
  for (const BlockId block : blocks) hold(block);
  return run;
}

void BlockPool::hold(BlockId block) {
  CHECK(holders(block) >= 1);
  ++holders_[index_of(block)];
}

void BlockPool::let_go(BlockId block) {
  CHECK(holders(block) >= 1);
  if (--holders_[index_of(block)] == 0) free_.push_back(block);
}

}  // namespace linnet
