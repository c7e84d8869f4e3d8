// The only reader of time. The engine takes a Clock, so simulations run on virtual time.
#pragma once

#include <chrono>

namespace linnet {

class Clock {
 public:
  using Duration = std::chrono::nanoseconds;

  virtual ~Clock() = default;
  // Monotonic time since some fixed point.
  virtual Duration now() const = 0;
  // Seconds since 1970, for replies and logs.
  virtual std::chrono::seconds unix_time() const = 0;
};

class SystemClock final : public Clock {
 public:
  Duration now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  std::chrono::seconds unix_time() const override {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  }
};

// Moves only when told to. Not thread-safe.
class VirtualClock final : public Clock {
 public:
  Duration now() const override { return now_; }
  std::chrono::seconds unix_time() const override { return std::chrono::duration_cast<std::chrono::seconds>(now_); }
  void advance(Duration by) { now_ += by; }

 private:
  Duration now_{};
};

}  // namespace linnet
