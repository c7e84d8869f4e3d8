#include "http/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "http/io_thread.h"
#include "http/serve_context.h"

namespace linnet::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// After a failed accept, most often for want of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

}  // namespace

// Thread 0 also accepts. Connections go to the threads in turn.
class Server::Impl {
 public:
  Impl(ServeContext context, int io_threads) : bodies_(context.limits.bodies_bytes_max), context_(std::move(context)) {
    context_.bodies = &bodies_;
    context_.workers = &workers_;
    for (int i = 0; i < io_threads; ++i) threads_.push_back(std::make_unique<IoThread>(context_, counts_));
    retry_timer_.emplace(threads_[0]->io());
  }

  Status listen(const ListenAddress& where) {
    LINNET_ASSIGN(Listening listening, http::listen(threads_[0]->io(), where));
    unix_path_ = where.unix_path;
    listening_.emplace(std::move(listening));
    if (!listening_->loopback) context_.access.trust_any_host();
    return {};
  }

  void start() {
    asio::co_spawn(threads_[0]->io(), accept_all(), asio::detached);
    for (auto& thread : threads_) thread->start();
  }

  void stop() {
    if (stopped_.exchange(true)) return;
    asio::post(threads_[0]->io(), [this] {
      error_code ignored;
      listening_->acceptor.close(ignored);
      retry_timer_->cancel();
    });
    for (auto& thread : threads_) thread->drain();
    for (auto& thread : threads_) thread->join();
    if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  }

  std::uint16_t port() const { return listening_->port; }
  std::string url() const {
    if (!unix_path_.empty()) return "unix:" + unix_path_;
    return (context_.tls ? "https://" : "http://") + listening_->address;
  }

 private:
  Task<> accept_all() {
    Acceptor& acceptor = listening_->acceptor;
    for (std::size_t turn = 0; acceptor.is_open(); turn = (turn + 1) % threads_.size()) {
      Socket socket(threads_[turn]->io());
      error_code error;
      co_await acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
      if (!error) {
        threads_[turn]->adopt(std::move(socket));
      } else if (acceptor.is_open() && error != asio::error::connection_aborted) {
        log_warning("cannot accept a connection: " + error.message());
        retry_timer_->expires_after(kAcceptPause);
        error_code ignored;
        co_await retry_timer_->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      }
    }
  }

  BodyBudget bodies_;
  asio::thread_pool workers_{1};
  ServeContext context_;  // unchanged once threads run
  ConnectionCounts counts_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::optional<Listening> listening_;             // its acceptor on threads_[0]
  std::optional<asio::steady_timer> retry_timer_;  // on threads_[0]
  std::string unix_path_;
  std::atomic<bool> stopped_ = false;
};

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Router router) {
  CHECK(options.io_threads >= 1 && options.error_body && options.make_id && options.clock != nullptr);
  ServeContext context{.limits = options.limits,
                       .router = std::move(router),
                       .error_body = std::move(options.error_body),
                       .make_id = std::move(options.make_id),
                       .clock = options.clock,
                       .access = Access(options.access)};
  if (options.tls) {
    LINNET_ASSIGN(context.tls, TlsContext::load(options.tls->certificate, options.tls->key));
  }
  auto impl = std::make_unique<Impl>(std::move(context), options.io_threads);
  LINNET_RETURN_IF_ERROR(impl->listen(options.listen));
  impl->start();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { stop(); }
std::uint16_t Server::port() const { return impl_->port(); }
std::string Server::url() const { return impl_->url(); }
void Server::stop() { impl_->stop(); }

}  // namespace linnet::http
