#include "cache/block_pool.h"

#include <utility>

#include "base/check.h"

namespace linnet {
namespace {

constexpr std::uint32_t kNone = 0xffffffffU;  // end of a chain

}  // namespace

BlockRun::BlockRun(BlockRun&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      first_(other.first_),
      last_(other.last_),
      size_(std::exchange(other.size_, 0)) {}

BlockRun& BlockRun::operator=(BlockRun&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  first_ = other.first_;
  last_ = other.last_;
  size_ = std::exchange(other.size_, 0);
  return *this;
}

BlockRun::Iterator BlockRun::begin() const { return {pool_, empty() ? kNone : first_}; }
BlockRun::Iterator BlockRun::end() const { return {pool_, kNone}; }

BlockRun::Iterator& BlockRun::Iterator::operator++() {
  block_ = pool_->next_[block_];
  return *this;
}

BlockRun::Iterator BlockRun::Iterator::operator++(int) {
  const Iterator before = *this;
  ++*this;
  return before;
}

void BlockRun::append(BlockRun&& other) {
  if (other.empty()) return;
  if (empty()) {
    *this = std::move(other);
    return;
  }
  CHECK(pool_ == other.pool_);
  pool_->next_[last_] = other.first_;
  last_ = other.last_;
  size_ += std::exchange(other.size_, 0);
}

void BlockRun::release() {
  if (size_ > 0) pool_->give_back(first_, last_, std::exchange(size_, 0));
}

BlockPool::BlockPool(std::int32_t block_count) {
  CHECK(block_count >= 0);
  const auto count = static_cast<std::uint32_t>(block_count);
  next_.resize(count);
  leased_.resize(count, false);
  for (std::uint32_t block = 0; block < count; ++block) next_[block] = block + 1 < count ? block + 1 : kNone;
  free_ = count > 0 ? 0 : kNone;
  available_ = block_count;
}

BlockPool::~BlockPool() { CHECK(available_ == size()); }

std::optional<BlockRun> BlockPool::take(std::int32_t count) {
  CHECK(count >= 0);
  if (count > available_) return std::nullopt;
  BlockRun run;
  if (count == 0) return run;
  run.pool_ = this;
  run.first_ = free_;
  run.size_ = count;
  for (std::int32_t taken = 0; taken < count; ++taken) {
    CHECK(!leased_[free_]);
    leased_[free_] = true;
    run.last_ = free_;
    free_ = next_[free_];
  }
  next_[run.last_] = kNone;
  available_ -= count;
  return run;
}

void BlockPool::give_back(std::uint32_t first, std::uint32_t last, std::int32_t count) {
  std::int32_t returned = 0;
  for (std::uint32_t block = first; block != kNone; block = next_[block]) {
    CHECK(leased_[block]);
    leased_[block] = false;
    ++returned;
  }
  CHECK(returned == count);
  next_[last] = free_;
  free_ = first;
  available_ += count;
}

}  // namespace linnet
