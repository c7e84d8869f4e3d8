// The bytes of all request bodies in memory at the same time, bounded together.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace linnet::http {

// Thread-safe; outlives its leases.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  std::size_t bytes_max() const { return bytes_max_; }
  std::size_t bytes_used() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class BodyLease;
  bool take(std::size_t bytes) {
    if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= bytes_max_) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  const std::size_t bytes_max_;
  std::atomic<std::size_t> used_ = 0;
};

// One body's share. Grows with what has arrived, not with what was announced: a slow sender holds little.
class BodyLease {
 public:
  BodyLease() = default;
  explicit BodyLease(BodyBudget& budget) : budget_(&budget) {}
  BodyLease(BodyLease&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyLease& operator=(BodyLease&& other) noexcept {
    release();
    budget_ = std::exchange(other.budget_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~BodyLease() { release(); }

  // False if all bodies together would be too much; then nothing changed. `bytes` never shrinks.
  bool grow_to(std::size_t bytes) {
    if (bytes <= bytes_) return true;
    if (budget_ == nullptr || !budget_->take(bytes - bytes_)) return false;
    bytes_ = bytes;
    return true;
  }
  void release() {
    if (budget_ != nullptr) budget_->give_back(std::exchange(bytes_, 0));
  }

 private:
  BodyBudget* budget_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace linnet::http
