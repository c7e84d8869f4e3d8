// How a handler answers: one whole response, or a stream of events.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <string>
#include <vector>

#include "http/event_signal.h"
#include "http/exchange.h"
#include "http/message.h"
#include "http/task.h"

namespace linnet::http {

class Connection;

// Used on the IO thread of its connection. Calls that write return false once the client has gone; further ones do nothing.
class ResponseWriter {
 public:
  ResponseWriter(Connection& connection, boost::asio::thread_pool& workers, Exchange exchange);
  ResponseWriter(const ResponseWriter&) = delete;
  ResponseWriter& operator=(const ResponseWriter&) = delete;

  // The one response to this request.
  Task<bool> send(Response response);

  // 200 with Content-Type text/event-stream. The stream ends when the handler returns.
  Task<bool> start_event_stream(std::vector<Header> headers);
  // Writes complete events ("data: ...\n\n", one or many) at once and waits until the socket took them: this is the
  // back-pressure.
  Task<bool> write_event(std::string events);

  // Runs `work` on another thread and goes on here when it is done, whether or not the client is still there: for what takes long
  // enough to hold up the other connections of this thread. `work` must not throw and touches nothing of this connection.
  Task<> run_aside(std::function<void()> work);

  // True once the client closed its side or a write failed. Noticed also while nothing is being written.
  bool client_gone() const;
  // Something to wait on for events of other threads. At most one wait() of a connection at a time.
  EventSignal make_signal();

  bool started() const { return started_; }

 private:
  friend class HandlerRun;
  Task<bool> finish();  // the last chunk of a stream

  Connection& connection_;
  boost::asio::thread_pool& workers_;
  Exchange exchange_;
  bool started_ = false;  // a head was written, or tried
  bool streaming_ = false;
};

}  // namespace linnet::http
