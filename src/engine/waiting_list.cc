#include "engine/waiting_list.h"

#include <algorithm>
#include <iterator>

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

void WaitingList::take_withdrawn(std::vector<Submission>& into) {
  const auto stays = [](const Entry& entry) { return !entry.submission.outbox->withdrawn(); };
  // Stable: the order of the entries is their order of arrival.
  const auto gone = std::find_if_not(entries_.begin(), entries_.end(), stays);
  auto kept = gone;
  for (auto entry = gone; entry != entries_.end(); ++entry) {
    if (stays(*entry)) {
      *kept++ = std::move(*entry);
    } else {
      into.push_back(std::move(entry->submission));
    }
  }
  entries_.erase(kept, entries_.end());
}

void WaitingList::take_all(std::vector<Submission>& into) {
  for (Entry& entry : entries_) into.push_back(std::move(entry.submission));
  entries_.clear();
}

}  // namespace linnet
