// The bounded queue from all threads to the engine.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "engine/outbox.h"
#include "engine/recorder.h"
#include "linnet/request.h"
#include "linnet/status.h"

namespace linnet {

struct ActiveSequence;

// What the sequences of one request have in common from submission to the end of the last of them. Engine's thread only.
struct OpenRequest {
  std::int32_t open = 0;                     // sequences whose FinishEvent is not decided
  std::int32_t waiting = 0;                  // of these, those that wait for another one to compute the prompt
  bool cancelled = false;                    // one of them was
  bool failed = false;                       // one of them did
  const ActiveSequence* computes = nullptr;  // the prompt; alive while anyone waits for it
  RequestTimes times;
  std::int32_t prompt_reused = 0;  // tokens of the prompt that came from the cache in whole blocks
};

// One sequence of a request before it is admitted.
struct Choice {
  std::int32_t index = 0;
  std::shared_ptr<Outbox> outbox;
};

// The first sequence has the request's own seed, so that asking for more of them changes none.
inline std::uint64_t choice_seed(std::uint64_t seed, std::int32_t index) {
  return index == 0 ? seed : mix64(mix64(seed) + static_cast<std::uint64_t>(index));
}

// A request that was checked and not yet admitted.
struct Submission {
  Request request;
  std::int32_t limit = 0;       // tokens of prompt + answer
  std::vector<Choice> choices;  // at least one
  std::shared_ptr<OpenRequest> open;
  std::optional<Clock::Duration> deadline;
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
