// What a connection's coroutine sleeps on: woken by its callbacks or by a deadline.
#pragma once

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>

#include "http/task.h"

namespace linnet::http {

// All on one IO thread. At most one sleeper. The sleeper looks at its condition before each sleep, so that a wake-up in between
// is not lost, and spurious ones do no harm.
class Wakeup {
 public:
  explicit Wakeup(const boost::asio::any_io_executor& executor) : timer_(executor) {}

  // For all sleeps until the next set_deadline().
  void set_deadline(std::optional<std::chrono::milliseconds> from_now) {
    if (from_now) {
      timer_.expires_after(*from_now);
    } else {
      timer_.expires_at(boost::asio::steady_timer::time_point::max());
    }
  }

  // False if the deadline passed.
  Task<bool> sleep() {
    boost::system::error_code error;
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, error));
    co_return error == boost::asio::error::operation_aborted;
  }

  void wake() { timer_.cancel(); }
  boost::asio::any_io_executor executor() { return timer_.get_executor(); }

 private:
  boost::asio::steady_timer timer_;
};

}  // namespace linnet::http
