// The bounded queue from the engine to one request's consumer.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/doorbell.h"
#include "linnet/event.h"
#include "linnet/ids.h"

namespace linnet {

// Shared by the engine (push, has_room, withdrawn) and one consumer (the rest). push() never waits: the engine asks has_room()
// first and leaves the row out of the step otherwise. Rings the engine's doorbell when the consumer made room or withdrew.
// Logprobs have room only if they were announced.
// Invariants: 1. At most `tokens_max` unread tokens. 2. Exactly one FinishEvent, after every token; it always has room.
// 3. push() allocates nothing. 4. `ready` is never called after on_ready() replaced it, or abandon(), has returned.
enum class Withdrawal { kNone, kCancelled, kSatisfied };

struct OutboxOptions {
  std::int32_t tokens_max = 1;
  bool logprobs = false;
};

class Outbox {
 public:
  Outbox(RequestId id, const OutboxOptions& options, std::shared_ptr<Doorbell> engine);

  RequestId id() const { return id_; }

  // Engine's side.
  bool has_room(std::size_t tokens = 1) const { return unread_.load(std::memory_order_acquire) + tokens <= ring_.size(); }
  bool withdrawn() const { return withdrawal() != Withdrawal::kNone; }
  Withdrawal withdrawal() const { return withdrawal_.load(std::memory_order_acquire); }
  // `logprobs`: null if they were not announced.
  void push(TokenId token, const TokenLogprobs* logprobs = nullptr);
  void finish(FinishEvent event);
  // Before the first token, if at all.
  void set_cached_tokens(std::int32_t count) { cached_tokens_.store(count, std::memory_order_release); }

  // Consumer's side; see RequestHandle.
  std::optional<Event> try_next();
  Event next();
  void on_ready(std::function<void()> ready);
  void withdraw(Withdrawal how);  // the first one counts
  std::int32_t cached_tokens() const { return cached_tokens_.load(std::memory_order_acquire); }
  void abandon();  // cancel, and nobody will read any more

 private:
  std::optional<Event> take_locked();
  void announce();

  const RequestId id_;
  const std::shared_ptr<Doorbell> engine_;
  std::atomic<Withdrawal> withdrawal_ = Withdrawal::kNone;
  std::atomic<std::size_t> unread_ = 0;
  std::atomic<std::int32_t> cached_tokens_ = 0;

  std::mutex mutex_;  // guards what follows, up to ready_mutex_
  std::condition_variable arrived_;
  std::vector<TokenId> ring_;
  std::vector<TokenLogprobs> logprobs_;  // of ring_'s tokens; empty if they were not announced
  std::size_t first_ = 0;
  std::optional<FinishEvent> finish_;
  bool finished_ = false;  // finish_ was set, and perhaps taken
  bool drained_ = false;   // finish_ was taken

  std::mutex ready_mutex_;  // held while ready_ runs; taken alone or before mutex_
  std::function<void()> ready_;
};

}  // namespace linnet
