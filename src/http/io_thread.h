// One IO thread and the connections that live on it.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>
#include <unordered_set>

#include "http/connection.h"
#include "http/serve_context.h"
#include "http/task.h"

namespace linnet::http {

// Connections of all IO threads, for the limit.
struct ConnectionCounts {
  std::atomic<int> served = 0;
  std::atomic<int> turned_away = 0;  // being told 503
};

// Public calls from any thread, but join() and the destructor from the owner's.
class IoThread {
 public:
  IoThread(const ServeContext& context, ConnectionCounts& counts);
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;
  ~IoThread();

  boost::asio::io_context& io() { return io_; }
  void start();
  // `socket` was made on io(). Serves it, or, if the limit of connections is reached, turns it away.
  void adopt(Socket socket);
  // No further requests; after the drain time, no further answers. The thread ends when its last connection has.
  void drain();
  void join();

 private:
  enum class Welcome { kServe, kTurnAway };
  Task<> run_connection(Socket socket, Welcome welcome);
  void begin_drain();

  const ServeContext& context_;
  ConnectionCounts& counts_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer drain_timer_;
  std::unordered_set<Connection*> live_;
  bool draining_ = false;
  std::thread thread_;
};

}  // namespace linnet::http
