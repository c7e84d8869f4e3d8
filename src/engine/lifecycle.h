// What a sequence takes from the prefix cache at its beginning and leaves there at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "cache/block_pool.h"
#include "cache/prefix_namespace.h"
#include "cache/prefix_tree.h"
#include "linnet/ids.h"
#include "linnet/request.h"

namespace linnet {

// How a request is executed; resolved once, when it is admitted.
struct ExecutionPlan {
  bool prompt_cache = false;
  std::string reason{};  // why not

  bool operator==(const ExecutionPlan&) const = default;
};

// What the engine's sequences share; it outlives them.
struct LifecycleServices {
  BlockPool& pool;
  PrefixTree& cache;
  std::int32_t block_tokens;
  PrefixNamespace base;  // of requests without a scope
};

// What a cache gave to a sequence that begins.
struct Reused {
  std::int32_t tokens = 0;
  std::int32_t whole_tokens = 0;       // of these, in blocks that are shared
  std::optional<BlockId> copy_from{};  // the rest is the beginning of this block; it goes into the first block of its own

  bool operator==(const Reused&) const = default;
};

// One sequence's KV blocks from its admission to its end. The phases S1 to S14 of docs/contracts.md, as far as there are
// caches for them: S6 namespace, S8 lookup, S13 put, S14 failure, S2 cleanup (BlockRun's destructor).
// Engine's thread only. The services outlive it.
class SequenceLifecycle {
 public:
  SequenceLifecycle(const LifecycleServices& services, const ExecutionPlan& plan, const Request& request);

  const ExecutionPlan& plan() const { return plan_; }
  const std::string& name_space() const { return name_space_; }
  std::span<const BlockId> blocks() const { return blocks_.ids(); }

  // S8: takes the longest prefix of `history`, but for its last token, and free blocks up to `count` in all, with `reserve` more
  // left free for others; entries of the cache make room. Nothing, and nothing has happened, if there is not enough.
  std::optional<Reused> begin(std::span<const TokenId> history, std::int32_t count, std::int32_t reserve, Clock::Duration now);
  // One that begins beside this one: it shares its first `shared` blocks and has `own` free ones, which there are.
  SequenceLifecycle beside(std::int32_t shared, std::int32_t own) const;
  // Before anything is computed: looks again, and exchanges its first blocks for more of the cache's.
  Reused look_again(std::span<const TokenId> history, Clock::Duration now);
  // Before anything is computed: exchanges its first blocks for those of `other`, which has the first `tokens` tokens of its
  // history.
  Reused adopt(const SequenceLifecycle& other, std::int32_t tokens);

  // S13: a success leaves its KV, that of exactly `tokens`, to the cache if the plan allows it.
  void complete(std::span<const TokenId> tokens, Clock::Duration now);
  // S14: nothing of a failed or cancelled run gets there.
  void drop();

 private:
  SequenceLifecycle(const SequenceLifecycle& like, BlockRun blocks)
      : services_(like.services_),
        plan_(like.plan_),
        name_space_(like.name_space_),
        returns_(like.returns_),
        blocks_(std::move(blocks)) {}
  PrefixUse use(Clock::Duration now) const { return {.name_space = name_space_, .now = now, .returns = returns_}; }
  void exchange_first(BlockRun run);

  const LifecycleServices* services_;
  ExecutionPlan plan_;
  std::string name_space_;
  bool returns_;
  BlockRun blocks_;
  std::int32_t shared_ = 0;  // of blocks_, the first ones, that came from elsewhere
};

}  // namespace linnet
