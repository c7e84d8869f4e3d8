#include "http/server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
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
using asio::ip::tcp;
using boost::system::error_code;

// After a failed accept, most often for want of file descriptors.
constexpr std::chrono::milliseconds kAcceptPause{100};

std::string to_text(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port());
}

Error listen_error(const std::string& where, const error_code& error) {
  std::string message = "cannot listen on " + where + ": " + error.message();
  if (error == asio::error::address_in_use) message += "; another program has it, choose another port with --port";
  if (error == asio::error::access_denied) message += "; ports below 1024 need privileges, choose another with --port";
  return {ErrorCode::kIo, std::move(message), "--port"};
}

Result<tcp::endpoint> resolve(asio::io_context& io, const std::string& host, std::uint16_t port) {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (!error) return tcp::endpoint(address, port);
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--host " + host + " is neither an address nor a known name: " + error.message(),
                 "--host"};
  }
  // IPv4 first: who connects by name tries both.
  const auto v4 = std::find_if(found.begin(), found.end(), [](const auto& entry) { return entry.endpoint().address().is_v4(); });
  return (v4 == found.end() ? found.begin() : v4)->endpoint();
}

Status open(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return listen_error(to_text(endpoint), error);
  return {};
}

}  // namespace

// Thread 0 also accepts. Connections go to the threads in turn.
class Server::Impl {
 public:
  explicit Impl(ServeContext context, int io_threads) : context_(std::move(context)) {
    for (int i = 0; i < io_threads; ++i) threads_.push_back(std::make_unique<IoThread>(context_, counts_));
    acceptor_.emplace(threads_[0]->io());
    retry_timer_.emplace(threads_[0]->io());
  }

  Status listen(const std::string& host, std::uint16_t port) {
    LINNET_ASSIGN(const tcp::endpoint wanted, resolve(threads_[0]->io(), host, port));
    LINNET_RETURN_IF_ERROR(open(*acceptor_, wanted));
    error_code error;
    endpoint_ = acceptor_->local_endpoint(error);
    if (error) return listen_error(to_text(wanted), error);
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
      acceptor_->close(ignored);
      retry_timer_->cancel();
    });
    for (auto& thread : threads_) thread->drain();
    for (auto& thread : threads_) thread->join();
  }

  const tcp::endpoint& endpoint() const { return endpoint_; }

 private:
  Task<> accept_all() {
    for (std::size_t turn = 0; acceptor_->is_open(); turn = (turn + 1) % threads_.size()) {
      tcp::socket socket(threads_[turn]->io());
      error_code error;
      co_await acceptor_->async_accept(socket, asio::redirect_error(asio::use_awaitable, error));
      if (!error) {
        threads_[turn]->adopt(std::move(socket));
      } else if (acceptor_->is_open() && error != asio::error::connection_aborted) {
        log_warning("cannot accept a connection: " + error.message());
        retry_timer_->expires_after(kAcceptPause);
        error_code ignored;
        co_await retry_timer_->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      }
    }
  }

  const ServeContext context_;
  ConnectionCounts counts_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::optional<tcp::acceptor> acceptor_;          // on threads_[0]
  std::optional<asio::steady_timer> retry_timer_;  // on threads_[0]
  tcp::endpoint endpoint_;
  std::atomic<bool> stopped_ = false;
};

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Router router) {
  CHECK(options.io_threads >= 1 && options.error_body && options.make_id && options.clock != nullptr);
  ServeContext context{.limits = options.limits,
                       .router = std::move(router),
                       .error_body = std::move(options.error_body),
                       .make_id = std::move(options.make_id),
                       .clock = options.clock};
  auto impl = std::make_unique<Impl>(std::move(context), options.io_threads);
  LINNET_RETURN_IF_ERROR(impl->listen(options.host, options.port));
  impl->start();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { stop(); }
std::uint16_t Server::port() const { return impl_->endpoint().port(); }
std::string Server::address() const { return to_text(impl_->endpoint()); }
void Server::stop() { impl_->stop(); }

}  // namespace linnet::http
