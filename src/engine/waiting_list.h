// Requests that wait for room, and which of them is next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/inbox.h"

namespace linnet {

// A sequence that ends before it was admitted.
struct Leaver {
  std::shared_ptr<OpenRequest> open;
  std::shared_ptr<Outbox> outbox;
  std::int32_t prompt_tokens = 0;
};

// Highest priority first, then order of arrival. The next one is never skipped for a smaller one that would fit.
// Invariant: a request is passed over by later arrivals at most kPassedOverMax times; after that only earlier ones go before it.
// Engine's thread only.
class WaitingList {
 public:
  static constexpr std::int32_t kPassedOverMax = 32;

  // Arrivals are added here, in order.
  std::vector<Submission>& arrivals() { return arrivals_; }
  void accept_arrivals();

  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  // The list is not empty.
  const Submission& next() const;
  Submission take_next();
  // Moves every sequence whose consumer withdrew, and every one of a request whose deadline has passed, to the end of `into`.
  void take_leavers(Clock::Duration now, std::vector<Leaver>& into);
  void take_all(std::vector<Leaver>& into);
  // The nearest deadline, or Clock::Duration::max().
  Clock::Duration next_deadline() const;

 private:
  struct Entry {
    Submission submission;
    std::int32_t passed_over = 0;
  };
  std::size_t next_index() const;

  std::vector<Submission> arrivals_;
  std::vector<Entry> entries_;  // in order of arrival
};

}  // namespace linnet
