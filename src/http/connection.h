// One client's socket: bytes in, bytes out, and whether the client is still there.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cstddef>
#include <optional>

#include "http/limits.h"
#include "http/task.h"
#include "http/transport.h"
#include "http/wakeup.h"

namespace linnet::http {

// Lives on one IO thread and in the coroutine that serves it; nothing here is called from another thread.
//   1. At most one coroutine sleeps (wakeup_), whether it waits for bytes, for room, or for an EventSignal.
//   2. Callbacks of the socket hold `this`: close() must be awaited before the connection is destroyed.
//   3. The end of the client's sending counts as its leaving: HTTP gives no way to tell a half-closed client from one that has
//   gone.
class Connection {
 public:
  enum class Fill { kBytes, kEnd, kTimeout };

  Connection(Transport transport, const Limits& limits);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  boost::beast::flat_buffer& buffer() { return buffer_; }  // received, not yet consumed

  // Receives at least one byte into buffer() before `wakeup()`'s deadline. kEnd: the client sends no more, or the connection
  // broke.
  Task<Fill> fill();
  // The same before a request's first byte, when a stopping server need not wait: then kEnd.
  Task<Fill> fill_idle();
  // From now on what the client sends is read ahead (up to its limit) and its leaving noticed, while the coroutine does other
  // things.
  void begin_watching();
  void end_watching() { watching_ahead_ = false; }

  // Sends all of it. False if the client has gone or took too long; then the connection is broken. Changes the wakeup's deadline.
  Task<bool> write(std::array<boost::asio::const_buffer, 3> buffers);
  Task<bool> write(boost::asio::const_buffer buffer);

  // Tells the client that nothing more comes, then reads and drops what it still sends, so that the last reply is not lost with a
  // reset.
  Task<> linger();
  Task<> close();

  bool gone() const { return ended_ || broken_; }
  bool closing() const { return closing_; }  // no further request after this one
  void shut_down();                          // the server stops: finish what is under way
  void abort();                              // now
  Wakeup& wakeup() { return wakeup_; }

 private:
  std::size_t receive();  // what is there, up to one piece; sets ended_ or broken_
  void wait_readable();
  void wait_writable();
  void wait_broken();
  Task<Fill> fill_until(bool idle);

  Transport transport_;
  const Limits& limits_;
  boost::beast::flat_buffer buffer_;
  Wakeup wakeup_;
  bool readable_wait_ = false;  // a callback is under way
  bool writable_wait_ = false;
  bool broken_wait_ = false;
  bool watching_ahead_ = false;
  bool ended_ = false;
  bool broken_ = false;
  bool closing_ = false;
};

}  // namespace linnet::http
