// The bounded queue from all threads to the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/outbox.h"
#include "linnet/request.h"
#include "linnet/status.h"

namespace linnet {

// A request that was checked and not yet admitted.
struct Submission {
  Request request;
  std::int32_t limit = 0;  // tokens of prompt + answer
  std::shared_ptr<Outbox> outbox;
};

// Thread-safe. Counts a request as waiting from push() until the engine says it is not any more.
// Cancel needs no entry here: it is a mark on the request's outbox, so it cannot be refused by a full queue.
class Inbox {
 public:
  explicit Inbox(std::int32_t waiting_max) : waiting_max_(waiting_max) {}

  // Errors: kQueueFull; kUnavailable after close().
  Status push(Submission submission);
  // Appends what arrived to `into`, in order of arrival.
  void drain(std::vector<Submission>& into);
  // `count` drained requests were admitted, or ended.
  void left(std::int32_t count);
  void close();

  std::int32_t waiting() const;
  bool closed() const;

 private:
  const std::int32_t waiting_max_;
  mutable std::mutex mutex_;
  std::vector<Submission> arrived_;
  std::int32_t waiting_ = 0;
  bool closed_ = false;
};

}  // namespace linnet
