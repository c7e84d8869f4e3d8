// A handler's way to wait for other threads: woken by them, by the client leaving, or by time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "http/task.h"

namespace linnet::http {

class Connection;

enum class Wake {
  kReady,    // notified since the last wait() that said so
  kTimeout,  // nothing happened in time
  kGone,     // the client left, or the server's drain time is over: stop working
};

// wait() belongs to the connection's IO thread, the notifier to any. Must not outlive the handler that made it.
class EventSignal {
 public:
  explicit EventSignal(Connection& connection);
  EventSignal(EventSignal&&) noexcept = default;
  EventSignal& operator=(EventSignal&&) = delete;
  ~EventSignal();

  // Returns at once (it posts to the IO thread), may be called from any thread, and also after the signal is gone (then:
  // nothing).
  std::function<void()> notifier() const;

  // Waits; forever without `timeout`. kGone wins over kReady. Notifications before or between waits are not lost; several count
  // once.
  Task<Wake> wait(std::optional<std::chrono::milliseconds> timeout = std::nullopt);

 private:
  struct State;
  Connection* connection_;
  // Shared with the notifiers that other threads hold: nothing says when they drop theirs.
  std::shared_ptr<State> state_;
};

}  // namespace linnet::http
