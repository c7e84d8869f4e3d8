#include "http/event_signal.h"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "http/connection.h"

namespace linnet::http {

// `waker` is the connection's until the signal ends: both happen on the IO thread, under the lock since notifiers post under it.
struct EventSignal::State {
  explicit State(Wakeup& to_wake) : waker(&to_wake), executor(to_wake.executor()) {}

  bool take_ready() {
    const std::lock_guard lock(mutex);
    return std::exchange(ready, false);
  }
  void end() {
    const std::lock_guard lock(mutex);
    waker = nullptr;
  }
  // On the IO thread.
  void wake() {
    const std::lock_guard lock(mutex);
    if (waker != nullptr) waker->wake();
  }

  std::mutex mutex;
  Wakeup* waker;
  bool ready = false;
  const boost::asio::any_io_executor executor;
};

EventSignal::EventSignal(Connection& connection)
    : connection_(&connection), state_(std::make_shared<State>(connection.wakeup())) {}

EventSignal::~EventSignal() {
  if (state_) state_->end();
}

std::function<void()> EventSignal::notifier() const {
  return [state = state_] {
    const std::lock_guard lock(state->mutex);
    // A notification that was not taken yet has been posted. After the end the IO thread may be gone: post nothing.
    if (state->waker == nullptr || std::exchange(state->ready, true)) return;
    boost::asio::post(state->executor, [state] { state->wake(); });
  };
}

Task<Wake> EventSignal::wait(std::optional<std::chrono::milliseconds> timeout) {
  connection_->wakeup().set_deadline(timeout);
  for (;;) {
    if (connection_->gone()) co_return Wake::kGone;
    if (state_->take_ready()) co_return Wake::kReady;
    const bool woken = co_await connection_->wakeup().sleep();
    if (!woken) co_return Wake::kTimeout;
  }
}

}  // namespace linnet::http
