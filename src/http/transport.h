// The bytes of one connection: a TCP or Unix socket, plain or under TLS.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <memory>
#include <string>

#include "linnet/status.h"

namespace linnet::http {

using Socket = boost::asio::generic::stream_protocol::socket;

// A server's certificate and key. Immutable; the sessions of any thread share it.
class TlsContext {
 public:
  // PEM files: the certificate with its chain, and its private key. Errors: kInvalidArgument with the file and OpenSSL's reason.
  static Result<TlsContext> load(const std::string& certificate_path, const std::string& key_path);

  SSL_CTX& context() const { return *context_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
};

// Never blocks. Used by its Connection alone, on its IO thread. TLS's handshake happens inside the first reads.
class Transport {
 public:
  using Buffers = std::array<boost::asio::const_buffer, 3>;

  // `tls`: null for plain bytes; else outlives this.
  Transport(Socket socket, const TlsContext* tls);

  Socket& socket() { return socket_; }
  // What is there, into `buffer`: under TLS until it is full or nothing is left, since what OpenSSL keeps makes no socket
  // readable. Errors: would_block, eof, or what broke.
  std::size_t read_some(boost::asio::mutable_buffer buffer, boost::system::error_code& error);
  // A part of `buffers`. After would_block the next call must begin with the same bytes. Before the end of a handshake:
  // not_connected.
  std::size_t write_some(const Buffers& buffers, boost::system::error_code& error);
  // A read that waits for room to send: handshakes answer.
  bool read_wants_room() const { return read_wants_room_; }
  // Tells the other side that nothing more comes.
  void end_sending();

 private:
  struct Free {
    void operator()(SSL* session) const { SSL_free(session); }
  };
  boost::system::error_code failure(int result, bool reading);

  Socket socket_;
  std::unique_ptr<SSL, Free> session_;
  bool read_wants_room_ = false;
};

}  // namespace linnet::http
