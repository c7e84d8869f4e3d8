#include <utility>

#include "base/check.h"
#include "engine/outbox.h"
#include "linnet/engine.h"

namespace linnet {

RequestHandle::RequestHandle(std::shared_ptr<Outbox> outbox) : outbox_(std::move(outbox)) {}

RequestHandle& RequestHandle::operator=(RequestHandle&& other) noexcept {
  if (this == &other) return *this;
  if (outbox_) outbox_->abandon();
  outbox_ = std::move(other.outbox_);
  return *this;
}

RequestHandle::~RequestHandle() {
  if (outbox_) outbox_->abandon();
}

RequestId RequestHandle::id() const {
  CHECK(outbox_ != nullptr);
  return outbox_->id();
}

std::int32_t RequestHandle::cached_tokens() const {
  CHECK(outbox_ != nullptr);
  return outbox_->cached_tokens();
}

std::optional<Event> RequestHandle::try_next() {
  CHECK(outbox_ != nullptr);
  return outbox_->try_next();
}

Event RequestHandle::next() {
  CHECK(outbox_ != nullptr);
  return outbox_->next();
}

void RequestHandle::on_ready(std::function<void()> ready) {
  CHECK(outbox_ != nullptr);
  outbox_->on_ready(std::move(ready));
}

void RequestHandle::cancel() {
  CHECK(outbox_ != nullptr);
  outbox_->withdraw(Withdrawal::kCancelled);
}

void RequestHandle::stop() {
  CHECK(outbox_ != nullptr);
  outbox_->withdraw(Withdrawal::kSatisfied);
}

}  // namespace linnet
