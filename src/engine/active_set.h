// The admitted sequences and the KV that they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/block_pool.h"
#include "engine/active_sequence.h"
#include "engine/executor.h"
#include "engine/inbox.h"
#include "sched/step_plan.h"

namespace linnet {

struct ActiveLimits {
  std::int32_t rows_max = 1;  // sequences that may take part in one step
  std::int32_t block_tokens = 1;
  std::int32_t block_count = 1;
  std::int32_t vocabulary = 1;
};

// Sequences of one request compute their prompt once: one of them does, the others wait for it, then begin as clones of it. They
// share the whole blocks of the prompt but its last token, which each feeds itself. If the one that computes ends early, another
// one begins anew.
// Engine's thread only. Only admit() allocates.
class ActiveSet {
 public:
  // Rows whose outbox is full take no part in steps, so more sequences than rows may be admitted; at most this many times
  // rows_max.
  static constexpr std::int32_t kAdmittedPerRow = 4;

  explicit ActiveSet(const ActiveLimits& limits);

  // Takes all choices of `submission` in. False, and nothing has happened, if there is no room for them now.
  bool admit(const Submission& submission);
  // In order of admission; ended ones among them until they are retired.
  std::span<const std::unique_ptr<ActiveSequence>> all() const { return sequences_; }
  // Those that are not ended; and of these, those whose consumer has room.
  std::int32_t open() const;
  std::int32_t open_with_room() const;

  // Lets sequences begin whose prompt is computed by now; appends their clones, which the next plan must carry.
  void begin_waiting(std::vector<SequenceClone>& clones);
  // Those that have an input to compute and a consumer with room, in order of admission.
  void gather_runnable(std::vector<ActiveSequence*>& runnable) const;
  // `sequence` was marked as ended: whoever waits for it need not wait for ever.
  void let_go(ActiveSequence& sequence);
  // Moves ended sequences to `gone`, without their blocks.
  void retire_ended(Executor& executor, std::vector<std::unique_ptr<ActiveSequence>>& gone);

  const BlockPool& pool() const { return pool_; }
  std::size_t capacity() const { return sequences_.capacity(); }

 private:
  ActiveLimits limits_;
  BlockPool pool_;
  std::vector<std::unique_ptr<ActiveSequence>> sequences_;
};

// Blocks of one request's sequences.
struct BlockNeed {
  std::int32_t shared = 0;  // by all of them
  std::int32_t own = 0;     // of each
};
BlockNeed blocks_needed(std::int32_t prompt, std::int32_t limit, std::int32_t choices, std::int32_t block_tokens);

}  // namespace linnet
