#include "http/transport.h"

#include <openssl/err.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"

namespace linnet::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kRecordBytes = 16 * 1024;  // what one TLS record holds

std::string last_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "unknown reason" : reason;
}

Error bad_file(const char* flag, const std::string& path, const char* what) {
  return {ErrorCode::kInvalidArgument, std::string(flag) + " " + path + " is not " + what + ": " + last_reason(), flag};
}

}  // namespace

Result<TlsContext> TlsContext::load(const std::string& certificate_path, const std::string& key_path) {
  TlsContext tls;
  tls.context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = tls.context_.get();
  CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, certificate_path.c_str()) != 1) {
    return bad_file("--tls-cert", certificate_path, "a PEM file of a certificate and its chain");
  }
  if (SSL_CTX_use_PrivateKey_file(context, key_path.c_str(), SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return bad_file("--tls-key", key_path, "a PEM file of the certificate's private key");
  }
  return tls;
}

Transport::Transport(Socket socket, const TlsContext* tls) : socket_(std::move(socket)) {
  if (tls == nullptr) return;
  session_.reset(SSL_new(&tls->context()));
  CHECK(session_ != nullptr && SSL_set_fd(session_.get(), socket_.native_handle()) == 1);
  SSL_set_accept_state(session_.get());
}

error_code Transport::failure(int result, bool reading) {
  const int kind = SSL_get_error(session_.get(), result);
  // Nothing is written before the handshake, so that writing never waits for the other side's bytes.
  if (kind == SSL_ERROR_WANT_READ && reading) return asio::error::would_block;
  if (kind == SSL_ERROR_WANT_WRITE) {
    read_wants_room_ = reading;
    return asio::error::would_block;
  }
  if (kind == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
  return asio::error::connection_reset;
}

std::size_t Transport::read_some(asio::mutable_buffer buffer, error_code& error) {
  if (!session_) return socket_.read_some(std::array<asio::mutable_buffer, 1>{buffer}, error);
  read_wants_room_ = false;
  std::size_t total = 0;
  while (total < buffer.size()) {
    ERR_clear_error();
    std::size_t got = 0;
    const int result = SSL_read_ex(session_.get(), static_cast<char*>(buffer.data()) + total, buffer.size() - total, &got);
    if (result != 1) {
      const error_code why = failure(result, /*reading=*/true);
      if (total == 0) error = why;
      break;
    }
    total += got;
  }
  return total;
}

std::size_t Transport::write_some(const Buffers& buffers, error_code& error) {
  if (!session_) return socket_.write_some(buffers, error);
  if (!SSL_is_init_finished(session_.get())) {
    error = asio::error::not_connected;
    return 0;
  }
  // One record for what belongs together.
  std::array<char, kRecordBytes> record;
  const std::size_t size = asio::buffer_copy(asio::buffer(record), buffers);
  if (size == 0) return 0;
  ERR_clear_error();
  std::size_t sent = 0;
  const int result = SSL_write_ex(session_.get(), record.data(), size, &sent);
  if (result != 1) error = failure(result, /*reading=*/false);
  return sent;
}

void Transport::end_sending() {
  ERR_clear_error();
  if (session_ && socket_.is_open() && SSL_is_init_finished(session_.get())) SSL_shutdown(session_.get());
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

}  // namespace linnet::http
