#include "engine/inbox.h"

#include <iterator>
#include <string>
#include <utility>

#include "base/check.h"

namespace linnet {

Status Inbox::push(Submission submission) {
  const std::lock_guard lock(mutex_);
  if (closed_) return Error{ErrorCode::kUnavailable, "the engine is stopping; send the request again later", ""};
  if (waiting_ >= waiting_max_) {
    return Error{
        ErrorCode::kQueueFull,
        std::to_string(waiting_) + " requests are waiting, the most that --max-waiting allows; send this one again later", ""};
  }
  ++waiting_;
  arrived_.push_back(std::move(submission));
  return {};
}

void Inbox::drain(std::vector<Submission>& into) {
  const std::lock_guard lock(mutex_);
  into.insert(into.end(), std::make_move_iterator(arrived_.begin()), std::make_move_iterator(arrived_.end()));
  arrived_.clear();
}

void Inbox::left(std::int32_t count) {
  const std::lock_guard lock(mutex_);
  CHECK(count >= 0 && count <= waiting_);
  waiting_ -= count;
}

void Inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

std::int32_t Inbox::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

bool Inbox::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace linnet
