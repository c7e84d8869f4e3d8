#include "sched/sequence.h"

#include "base/check.h"

namespace linnet {

Sequence::Sequence(SequenceId id, std::vector<TokenId> prompt, std::int32_t limit)
    : id_(id), tokens_(std::move(prompt)), prompt_(static_cast<std::int32_t>(tokens_.size())), limit_(limit) {
  CHECK(prompt_ >= 1);
  check_lengths();
  tokens_.reserve(static_cast<std::size_t>(limit_));
}

void Sequence::begin_at(std::int32_t count) {
  CHECK(computed_ == 0 && count >= 0 && count < known());
  cached_ = count;
  computed_ = count;
}

void Sequence::advance(std::int32_t count, std::uint64_t step) {
  CHECK(count >= 1);
  CHECK(step > last_step_);
  computed_ += count;
  last_step_ = step;
  check_lengths();
}

void Sequence::append(TokenId token) {
  tokens_.push_back(token);
  check_lengths();
}

void Sequence::check_lengths() const {
  CHECK(0 <= cached_ && cached_ <= computed_);
  CHECK(computed_ <= known());
  CHECK(prompt_ <= known() && known() <= limit_);
}

}  // namespace linnet
