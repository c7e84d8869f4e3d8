// A server with a few plain routes, for the tests of this folder.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "http/event_signal.h"
#include "http/response_writer.h"
#include "http/server.h"

namespace linnet::http {

// What the handlers of "/wait" and "/stream" saw, and the means to wake them from a test's thread.
class Waits {
 public:
  void add(std::function<void()> notifier) {
    const std::lock_guard lock(mutex_);
    notifiers_.push_back(std::move(notifier));
    ++begun;
  }
  void notify_all() {
    const std::lock_guard lock(mutex_);
    for (const auto& notify : notifiers_) notify();
  }

  std::atomic<int> begun = 0;
  std::atomic<int> ready = 0;
  std::atomic<int> timeouts = 0;
  std::atomic<int> gone = 0;

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> notifiers_;
};

// True as soon as `condition` is; false after ten seconds.
template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// GET /hello, GET /things/{id} and POST /echo answer at once; POST /aside from another thread; POST /wait when notified; POST
// /stream sends one event for each notification; GET /throw throws.
class TestServer {
 public:
  explicit TestServer(Limits limits = {}, int io_threads = 1);
  explicit TestServer(const std::function<void(ServerOptions&)>& change);
  std::uint16_t port() const { return server_->port(); }
  Server& server() { return *server_; }
  Waits& waits() { return waits_; }

 private:
  Task<> wait(const Request& request, ResponseWriter& writer);
  Task<> stream(const Request& request, ResponseWriter& writer);

  VirtualClock clock_;
  Waits waits_;
  std::unique_ptr<Server> server_;
};

}  // namespace linnet::http
