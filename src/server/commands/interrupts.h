// Ctrl-C and SIGTERM as plain calls: no code runs in a signal handler.
#pragma once

#include <functional>
#include <thread>

namespace linnet {

// Made before any other thread, so that all of them inherit the blocked signals; one thread waits for the signals and calls
// `on_signal(number)`. Its destructor ends that thread.
class Interrupts {
 public:
  explicit Interrupts(std::function<void(int)> on_signal);
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

 private:
  std::function<void(int)> on_signal_;
  std::thread waiter_;
};

}  // namespace linnet
