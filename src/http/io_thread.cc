#include "http/io_thread.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <string>
#include <utility>

#include "base/log.h"
#include "http/serve.h"

namespace linnet::http {
namespace {

namespace asio = boost::asio;

void log_failure(const std::exception_ptr& failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& exception) {
    log_error(std::string("a connection was dropped: ") + exception.what());
  }
}

}  // namespace

IoThread::IoThread(const ServeContext& context, ConnectionCounts& counts)
    : context_(context), counts_(counts), work_(asio::make_work_guard(io_)), drain_timer_(io_) {}

IoThread::~IoThread() {
  drain();
  join();
}

void IoThread::start() {
  thread_ = std::thread([this] { io_.run(); });
}

void IoThread::join() {
  if (thread_.joinable()) thread_.join();
}

void IoThread::adopt(Socket socket) {
  Welcome welcome = Welcome::kServe;
  if (counts_.served.fetch_add(1) >= context_.limits.connections_max) {
    --counts_.served;
    welcome = Welcome::kTurnAway;
    if (counts_.turned_away.fetch_add(1) >= context_.limits.refusals_max) {
      --counts_.turned_away;
      return;
    }
  }
  asio::co_spawn(io_, run_connection(std::move(socket), welcome), log_failure);
}

Task<> IoThread::run_connection(Socket socket, Welcome welcome) {
  Connection connection(Transport(std::move(socket), context_.tls ? &*context_.tls : nullptr), context_.limits);
  // Counted down however the coroutine ends.
  struct Membership {
    IoThread& thread;
    Connection* connection;
    std::atomic<int>& count;
    ~Membership() {
      thread.live_.erase(connection);
      --count;
      if (thread.live_.empty()) thread.drain_timer_.cancel();
    }
  };
  live_.insert(&connection);
  const Membership membership{*this, &connection, welcome == Welcome::kServe ? counts_.served : counts_.turned_away};
  if (draining_) connection.shut_down();
  std::exception_ptr failure;
  try {
    if (welcome == Welcome::kServe) {
      co_await serve_connection(connection, context_);
    } else {
      co_await turn_away(connection, context_);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  log_failure(failure);
  co_await connection.close();
}

void IoThread::drain() {
  asio::post(io_, [this] { begin_drain(); });
}

void IoThread::begin_drain() {
  if (draining_) return;
  draining_ = true;
  work_.reset();
  for (Connection* connection : live_) connection->shut_down();
  if (live_.empty()) return;
  drain_timer_.expires_after(context_.limits.drain_timeout);
  drain_timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    for (Connection* connection : live_) connection->abort();
  });
}

}  // namespace linnet::http
