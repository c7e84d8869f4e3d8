#include "engine/outbox.h"

#include <utility>

#include "base/check.h"

namespace linnet {

Outbox::Outbox(RequestId id, const OutboxOptions& options, std::shared_ptr<Doorbell> engine)
    : id_(id), engine_(std::move(engine)) {
  CHECK(options.tokens_max >= 1);
  ring_.resize(static_cast<std::size_t>(options.tokens_max));
  if (options.logprobs) logprobs_.resize(ring_.size());
}

void Outbox::push(TokenId token, const TokenLogprobs* logprobs) {
  CHECK((logprobs != nullptr) == !logprobs_.empty());
  {
    const std::lock_guard lock(mutex_);
    const std::size_t unread = unread_.load(std::memory_order_relaxed);
    CHECK(unread < ring_.size());
    CHECK(!finished_);
    const std::size_t place = (first_ + unread) % ring_.size();
    ring_[place] = token;
    if (logprobs != nullptr) logprobs_[place] = *logprobs;
    unread_.store(unread + 1, std::memory_order_release);
  }
  announce();
}

void Outbox::finish(FinishEvent event) {
  CHECK((event.reason == FinishReason::kError) == event.error.has_value());
  {
    const std::lock_guard lock(mutex_);
    CHECK(!finished_);
    finished_ = true;
    finish_ = std::move(event);
  }
  announce();
}

std::optional<Event> Outbox::try_next() {
  const std::lock_guard lock(mutex_);
  return take_locked();
}

Event Outbox::next() {
  std::unique_lock lock(mutex_);
  CHECK(!drained_);
  arrived_.wait(lock, [this] { return unread_.load(std::memory_order_relaxed) > 0 || finish_.has_value(); });
  return *take_locked();
}

std::optional<Event> Outbox::take_locked() {
  const std::size_t unread = unread_.load(std::memory_order_relaxed);
  if (unread > 0) {
    TokenEvent event{.token = ring_[first_]};
    if (!logprobs_.empty()) event.logprobs = logprobs_[first_];
    first_ = (first_ + 1) % ring_.size();
    unread_.store(unread - 1, std::memory_order_release);
    // Only a full outbox keeps its row out of the steps.
    if (unread == ring_.size() && !finished_) engine_->ring();
    return event;
  }
  if (!finish_) return std::nullopt;
  drained_ = true;
  Event event = std::move(*finish_);
  finish_.reset();
  return event;
}

void Outbox::on_ready(std::function<void()> ready) {
  const std::lock_guard ready_lock(ready_mutex_);
  ready_ = std::move(ready);
  if (!ready_) return;
  bool waiting = false;
  {
    const std::lock_guard lock(mutex_);
    waiting = unread_.load(std::memory_order_relaxed) > 0 || finish_.has_value();
  }
  if (waiting) ready_();
}

void Outbox::withdraw(Withdrawal how) {
  Withdrawal none = Withdrawal::kNone;
  if (withdrawal_.compare_exchange_strong(none, how, std::memory_order_acq_rel)) engine_->ring();
}

void Outbox::abandon() {
  on_ready({});
  bool open = false;
  {
    const std::lock_guard lock(mutex_);
    open = !finished_;
  }
  if (open) withdraw(Withdrawal::kCancelled);
}

void Outbox::announce() {
  arrived_.notify_one();
  const std::lock_guard lock(ready_mutex_);
  if (ready_) ready_();
}

}  // namespace linnet
