// The admitted sequences and the KV that they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "cache/block_pool.h"
#include "cache/prefix_namespace.h"
#include "cache/prefix_tree.h"
#include "engine/active_sequence.h"
#include "engine/executor.h"
#include "engine/inbox.h"
#include "engine/lifecycle.h"
#include "engine/recorder.h"
#include "linnet/stats.h"
#include "sched/step_plan.h"

namespace linnet {

struct ActiveLimits {
  std::int32_t rows_max = 1;  // sequences that may take part in one step
  std::int32_t block_tokens = 1;
  std::int32_t block_count = 1;
  std::int32_t vocabulary = 1;
  PrefixTreeOptions cache;
  PrefixNamespace name_space;  // of requests without a scope
};

// Blocks to be copied and sequences to be cloned before the next plan's rows, in order. The order is what makes it safe that
// a block to copy from may be given away by then: only rows and later copies write.
struct Beginnings {
  std::vector<SequenceClone> clones;
  std::vector<BlockCopy> copies;

  void add_to(StepPlan& plan) const {
    plan.clones.assign(clones.begin(), clones.end());
    plan.copies.assign(copies.begin(), copies.end());
  }
  void launched() {
    clones.clear();
    copies.clear();
  }
};

// Of requests that the cache was asked for.
struct CacheUse {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t hit_tokens = 0;
};

// Sequences of one request compute their prompt once: one of them does, the others wait for it, then begin as clones of it. They
// share the whole blocks of the prompt but its last token, which each feeds itself. If the one that computes ends early, another
// one begins anew.
// A sequence begins with what the prefix cache has of its prompt. If one that was admitted before computes a longer beginning
// of it, it waits for that and shares it; it has blocks of its own for the case that nothing comes of it.
// Engine's thread only. Only admit(), beginnings and endings allocate.
class ActiveSet {
 public:
  // Rows whose outbox is full take no part in steps, so more sequences than rows may be admitted; at most this many times
  // rows_max.
  static constexpr std::int32_t kAdmittedPerRow = 4;

  ActiveSet(const ActiveLimits& limits, Recorder& recorder);

  // Takes all choices of `submission` in. False, and nothing has happened, if there is no room for them now.
  bool admit(const Submission& submission, Clock::Duration now);
  // In order of admission; ended ones among them until they are retired.
  std::span<const std::unique_ptr<ActiveSequence>> all() const { return sequences_; }
  // Those that are not ended; and of these, those whose consumer has room.
  std::int32_t open() const;
  std::int32_t open_with_room() const;

  // Lets sequences begin that waited for what is computed by now.
  void begin_waiting(Clock::Duration now);
  // What the next plan must carry; cleared by whoever launched it.
  Beginnings& beginnings() { return beginnings_; }
  // Those that have an input to compute and a consumer with room, in order of admission.
  void gather_runnable(std::vector<ActiveSequence*>& runnable) const;
  // `sequence` was marked as ended: whoever waits for it need not wait for ever.
  void let_go(ActiveSequence& sequence);
  // Moves ended sequences to `gone`, without their blocks, which successful ones leave to the cache.
  void retire_ended(Executor& executor, Clock::Duration now, std::vector<std::unique_ptr<ActiveSequence>>& gone);

  PrefixTree& cache() { return cache_; }
  // Sequences, blocks and the use of the cache, as they are now.
  void copy_to(EngineStats& stats) const;
  std::size_t capacity() const { return sequences_.capacity(); }

 private:
  ExecutionPlan plan_of(const Request& request) const;
  void begin_request(const Submission& submission, SequenceLifecycle first, const Reused& reused, Clock::Duration now);
  // Whoever was admitted before `place` and has, or will soon have, most of that sequence's beginning.
  Following find_leader(std::size_t place) const;
  void begin_following(std::size_t place, Clock::Duration now);
  void begin_clone(ActiveSequence& sequence);
  void begin_at(ActiveSequence& sequence, const Reused& reused);
  void begin_first(ActiveSequence& sequence, const Reused& reused);

  ActiveLimits limits_;
  Recorder& recorder_;
  BlockPool pool_;
  PrefixTree cache_;
  LifecycleServices services_;
  std::vector<std::unique_ptr<ActiveSequence>> sequences_;
  Beginnings beginnings_;
  CacheUse cache_use_;
};

// Blocks of one request's sequences.
struct BlockNeed {
  std::int32_t shared = 0;  // by all of them
  std::int32_t own = 0;     // of each
};
BlockNeed blocks_needed(std::int32_t prompt, std::int32_t limit, std::int32_t choices, std::int32_t block_tokens);

}  // namespace linnet
