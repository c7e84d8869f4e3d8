// Wakes one sleeping thread. A ring while nobody sleeps is kept: the next wait() returns at once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace linnet {

// Thread-safe. Rings that nobody has waited for yet are one ring.
class Doorbell {
 public:
  void ring() {
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    changed_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return rung_; });
    rung_ = false;
  }
  // Returns after `most` at the latest.
  void wait_for(std::chrono::nanoseconds most) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, most, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

}  // namespace linnet
