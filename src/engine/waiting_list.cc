#include "engine/waiting_list.h"

#include <algorithm>

#include "base/check.h"

namespace linnet {

void WaitingList::accept_arrivals() {
  for (Submission& submission : arrivals_) entries_.push_back({.submission = std::move(submission)});
  arrivals_.clear();
}

std::size_t WaitingList::next_index() const {
  CHECK(!entries_.empty());
  std::size_t best = 0;
  for (std::size_t index = 0; index < entries_.size(); ++index) {
    if (entries_[index].passed_over >= kPassedOverMax) return index;
    if (entries_[index].submission.request.priority > entries_[best].submission.request.priority) best = index;
  }
  return best;
}

const Submission& WaitingList::next() const { return entries_[next_index()].submission; }

Submission WaitingList::take_next() {
  const std::size_t index = next_index();
  for (std::size_t earlier = 0; earlier < index; ++earlier) ++entries_[earlier].passed_over;
  Submission taken = std::move(entries_[index].submission);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
  return taken;
}

void WaitingList::take_leavers(Clock::Duration now, std::vector<Leaver>& into) {
  for (Entry& entry : entries_) {
    Submission& waiting = entry.submission;
    const bool late = waiting.deadline && now >= *waiting.deadline;
    std::erase_if(waiting.choices, [&](Choice& choice) {
      if (!late && !choice.outbox->withdrawn()) return false;
      into.push_back({.open = waiting.open,
                      .outbox = std::move(choice.outbox),
                      .prompt_tokens = static_cast<std::int32_t>(waiting.request.prompt.size())});
      return true;
    });
  }
  std::erase_if(entries_, [](const Entry& entry) { return entry.submission.choices.empty(); });
}

void WaitingList::take_all(std::vector<Leaver>& into) {
  for (Entry& entry : entries_) entry.submission.deadline = Clock::Duration::min();
  take_leavers(Clock::Duration::min(), into);
}

Clock::Duration WaitingList::next_deadline() const {
  Clock::Duration next = Clock::Duration::max();
  for (const Entry& entry : entries_) next = std::min(next, entry.submission.deadline.value_or(next));
  return next;
}

}  // namespace linnet
