#include "http/event_signal.h"

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "http/connection.h"

namespace linnet::http {

// `waker` is written on the IO thread alone, under the lock, which others hold while they look at it and post: so they never post
// to an IO thread that is gone. The IO thread itself reads it without, and so never waits for a notifier that is in the middle of
// posting.
struct EventSignal::State {
  explicit State(Wakeup& to_wake) : waker(&to_wake), executor(to_wake.executor()) {}

  void end() {
    const std::lock_guard lock(mutex);
    waker = nullptr;
  }
  // On the IO thread.
  void wake() {
    if (waker != nullptr) waker->wake();
  }

  std::mutex mutex;
  Wakeup* waker;
  std::atomic<bool> ready = false;
  const boost::asio::any_io_executor executor;
};

EventSignal::EventSignal(Connection& connection)
    : connection_(&connection), state_(std::make_shared<State>(connection.wakeup())) {}

EventSignal::~EventSignal() {
  if (state_) state_->end();
}

std::function<void()> EventSignal::notifier() const {
  return [state = state_] {
    if (state->ready.exchange(true)) return;  // posted already, and not taken yet
    const std::lock_guard lock(state->mutex);
    if (state->waker == nullptr) return;
    boost::asio::post(state->executor, [state] { state->wake(); });
  };
}

Task<Wake> EventSignal::wait(std::optional<std::chrono::milliseconds> timeout) {
  connection_->wakeup().set_deadline(timeout);
  for (;;) {
    if (connection_->gone()) co_return Wake::kGone;
    if (state_->ready.exchange(false)) co_return Wake::kReady;
    const bool woken = co_await connection_->wakeup().sleep();
    if (!woken) co_return Wake::kTimeout;
  }
}

}  // namespace linnet::http
