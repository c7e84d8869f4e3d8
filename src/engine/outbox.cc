#include "engine/outbox.h"

#include <utility>

#include "base/check.h"

namespace linnet {

Outbox::Outbox(RequestId id, std::int32_t tokens_max, std::shared_ptr<Doorbell> engine) : id_(id), engine_(std::move(engine)) {
  CHECK(tokens_max >= 1);
  ring_.resize(static_cast<std::size_t>(tokens_max));
}

void Outbox::push(TokenId token) {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t unread = unread_.load(std::memory_order_relaxed);
    CHECK(unread < ring_.size());
    CHECK(!finished_);
    ring_[(first_ + unread) % ring_.size()] = token;
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
    const TokenId token = ring_[first_];
    first_ = (first_ + 1) % ring_.size();
    unread_.store(unread - 1, std::memory_order_release);
    // Only a full outbox keeps its row out of the steps.
    if (unread == ring_.size() && !finished_) engine_->ring();
    return TokenEvent{token};
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

void Outbox::cancel() {
  if (withdrawn_.exchange(true, std::memory_order_acq_rel)) return;
  engine_->ring();
}

void Outbox::abandon() {
  on_ready({});
  bool open = false;
  {
    const std::lock_guard lock(mutex_);
    open = !finished_;
  }
  if (open) cancel();
}

void Outbox::announce() {
  arrived_.notify_one();
  const std::lock_guard lock(ready_mutex_);
  if (ready_) ready_();
}

}  // namespace linnet
