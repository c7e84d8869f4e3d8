#include "engine/active_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"

namespace linnet {

BlockNeed blocks_needed(std::int32_t prompt, std::int32_t limit, std::int32_t choices, std::int32_t block_tokens) {
  const std::int32_t all = (limit + block_tokens - 1) / block_tokens;
  const std::int32_t shared = choices > 1 ? (prompt - 1) / block_tokens : 0;
  return {.shared = shared, .own = all - shared};
}

ActiveSet::ActiveSet(const ActiveLimits& limits, Recorder& recorder)
    : limits_(limits),
      recorder_(recorder),
      pool_(limits.block_count),
      cache_(pool_, limits.cache),
      services_{.pool = pool_, .cache = cache_, .block_tokens = limits.block_tokens, .base = limits.name_space} {
  sequences_.reserve(static_cast<std::size_t>(limits.rows_max) * kAdmittedPerRow);
  beginnings_.clones.reserve(sequences_.capacity());
  beginnings_.copies.reserve(sequences_.capacity());
}

ExecutionPlan ActiveSet::plan_of(const Request& request) const {
  if (limits_.cache.blocks_max == 0) return {.reason = "there is no prompt cache"};
  if (!request.prompt_cache) return {.reason = "the request wants none"};
  return {.prompt_cache = true};
}

bool ActiveSet::admit(const Submission& submission, Clock::Duration now) {
  const auto choices = static_cast<std::int32_t>(submission.choices.size());
  if (sequences_.size() + submission.choices.size() > sequences_.capacity()) return false;
  const auto prompt = static_cast<std::int32_t>(submission.request.prompt.size());
  const BlockNeed need = blocks_needed(prompt, submission.limit, choices, limits_.block_tokens);
  const std::int32_t siblings = need.own * (choices - 1);
  const std::int32_t least = need.shared + need.own + siblings - (prompt - 1) / limits_.block_tokens;
  if (least > pool_.available() + cache_.size()) return false;
  SequenceLifecycle first(services_, plan_of(submission.request), submission.request);
  const std::optional<Reused> reused = first.begin(submission.request.prompt, need.shared + need.own, siblings, now);
  if (!reused) return false;
  begin_request(submission, std::move(first), *reused, now);
  return true;
}

void ActiveSet::begin_request(const Submission& submission, SequenceLifecycle first, const Reused& reused, Clock::Duration now) {
  recorder_.admitted(submission.open->times);
  const std::size_t place = sequences_.size();
  const auto choices = static_cast<std::int32_t>(submission.choices.size());
  const BlockNeed need =
      blocks_needed(static_cast<std::int32_t>(submission.request.prompt.size()), submission.limit, choices, limits_.block_tokens);
  for (const Choice& choice : submission.choices) {
    SequenceLifecycle lifecycle =
        sequences_.size() == place ? std::move(first) : sequences_[place]->lifecycle.beside(need.shared, need.own);
    sequences_.push_back(std::make_unique<ActiveSequence>(submission, choice, std::move(lifecycle), limits_.vocabulary));
    sequences_.back()->admitted = now;
    sequences_.back()->role = PromptRole::kWaits;
  }
  ActiveSequence& computing = *sequences_[place];
  computing.role = PromptRole::kComputes;
  OpenRequest& request = *submission.open;
  request.waiting = choices - 1;
  request.computes = &computing;
  request.prompt_reused = reused.whole_tokens;
  if (choices == 1) computing.following = find_leader(place);
  if (computing.following.tokens >= reused.tokens + limits_.block_tokens) {
    computing.role = PromptRole::kFollows;  // and need not copy what it may get by sharing
  } else {
    begin_first(computing, reused);
  }
}

Following ActiveSet::find_leader(std::size_t place) const {
  const ActiveSequence& sequence = *sequences_[place];
  Following best;
  if (!sequence.lifecycle.plan().prompt_cache) return best;
  const std::span<const TokenId> history = sequence.sequence.tokens();
  for (std::size_t before = 0; before < place; ++before) {
    const ActiveSequence& other = *sequences_[before];
    const std::span<const TokenId> known = other.sequence.tokens();
    if (other.ended || other.lifecycle.name_space() != sequence.lifecycle.name_space()) continue;
    if (!other.lifecycle.plan().prompt_cache) continue;
    const auto differs = std::mismatch(history.begin(), history.end() - 1, known.begin(), known.end());
    auto common = static_cast<std::int32_t>(differs.first - history.begin());
    // One that answers already may be paused by its reader: what it has is all there is to wait for.
    if (other.sequence.generated() > 0) common = std::min(common, other.sequence.computed());
    if (common > best.tokens) best = {.sequence = other.sequence.id(), .tokens = common};
  }
  return best;
}

std::int32_t ActiveSet::open() const {
  return static_cast<std::int32_t>(
      std::count_if(sequences_.begin(), sequences_.end(), [](const auto& sequence) { return !sequence->ended; }));
}

std::int32_t ActiveSet::open_with_room() const {
  return static_cast<std::int32_t>(std::count_if(sequences_.begin(), sequences_.end(),
                                                 [](const auto& sequence) { return !sequence->ended && sequence->has_room(); }));
}

void ActiveSet::begin_waiting(Clock::Duration now) {
  for (std::size_t place = 0; place < sequences_.size(); ++place) {
    ActiveSequence& sequence = *sequences_[place];
    if (sequence.ended) continue;
    if (sequence.role == PromptRole::kFollows) begin_following(place, now);
    if (sequence.role == PromptRole::kWaits && sequence.request->computes->has_prompt()) begin_clone(sequence);
  }
}

void ActiveSet::begin_following(std::size_t place, Clock::Duration now) {
  ActiveSequence& sequence = *sequences_[place];
  const auto leader = std::find_if(sequences_.begin(), sequences_.begin() + static_cast<std::ptrdiff_t>(place),
                                   [&](const auto& other) { return other->sequence.id() == sequence.following.sequence; });
  if (leader != sequences_.begin() + static_cast<std::ptrdiff_t>(place) && !(*leader)->ended) {
    if ((*leader)->sequence.computed() < sequence.following.tokens) return;
    return begin_first(sequence, sequence.lifecycle.adopt((*leader)->lifecycle, sequence.following.tokens));
  }
  // It left. What it computed may be in the cache by now; or another one is on the way.
  const Reused reused = sequence.lifecycle.look_again(sequence.sequence.tokens(), now);
  sequence.following = find_leader(place);
  if (sequence.following.tokens < reused.tokens + limits_.block_tokens) begin_first(sequence, reused);
}

void ActiveSet::begin_clone(ActiveSequence& sequence) {
  OpenRequest& request = *sequence.request;
  const ActiveSequence& source = *request.computes;
  const std::int32_t tokens = sequence.sequence.prompt() - 1;
  const auto last = static_cast<std::size_t>(tokens / limits_.block_tokens);
  beginnings_.clones.push_back({.from = source.sequence.id(), .to = sequence.sequence.id(), .tokens = tokens});
  Reused reused{.tokens = tokens};
  if (tokens % limits_.block_tokens != 0) reused.copy_from = source.sequence.block_table()[last];
  begin_at(sequence, reused);
  sequence.role = PromptRole::kDone;
  --request.waiting;
}

void ActiveSet::begin_at(ActiveSequence& sequence, const Reused& reused) {
  sequence.show_blocks();
  if (reused.tokens > 0) sequence.sequence.begin_at(reused.tokens);
  sequence.outbox->set_cached_tokens(reused.tokens);
  if (reused.copy_from) {
    const auto last = static_cast<std::size_t>(reused.tokens / limits_.block_tokens);
    beginnings_.copies.push_back(
        {.sequence = sequence.sequence.id(), .from = *reused.copy_from, .to = sequence.sequence.block_table()[last]});
  }
  sequence.role = PromptRole::kComputes;
}

// A request's first sequence begins.
void ActiveSet::begin_first(ActiveSequence& sequence, const Reused& reused) {
  begin_at(sequence, reused);
  if (!sequence.lifecycle.plan().prompt_cache) return;
  ++(reused.tokens > 0 ? cache_use_.hits : cache_use_.misses);
  cache_use_.hit_tokens += static_cast<std::uint64_t>(reused.tokens);
  recorder_.looked_up(sequence.request->times, sequence.times, reused.tokens, sequence.admitted);
}

void ActiveSet::copy_to(EngineStats& stats) const {
  stats.rows_running = open();
  stats.kv_blocks_total = pool_.size();
  stats.kv_blocks_used = pool_.used();
  stats.cache_blocks = cache_.size();
  stats.cache_blocks_evicted = cache_.evicted();
  stats.cache_hits = cache_use_.hits;
  stats.cache_misses = cache_use_.misses;
  stats.cache_hit_tokens = cache_use_.hit_tokens;
}

void ActiveSet::gather_runnable(std::vector<ActiveSequence*>& runnable) const {
  runnable.clear();
  for (const auto& sequence : sequences_) {
    const bool waits = sequence->role == PromptRole::kWaits || sequence->role == PromptRole::kFollows;
    const bool ready = !sequence->ended && !waits;
    if (ready && sequence->has_room()) runnable.push_back(sequence.get());
  }
}

void ActiveSet::let_go(ActiveSequence& sequence) {
  CHECK(sequence.ended);
  OpenRequest& request = *sequence.request;
  if (sequence.role == PromptRole::kWaits) {
    sequence.role = PromptRole::kDone;
    --request.waiting;
    return;
  }
  if (request.computes != &sequence || request.waiting == 0 || sequence.has_prompt()) return;
  const auto heir = std::find_if(sequences_.begin(), sequences_.end(), [&](const auto& other) {
    return !other->ended && other->request.get() == &request && other->role == PromptRole::kWaits;
  });
  CHECK(heir != sequences_.end());
  sequence.role = PromptRole::kDone;
  (*heir)->role = PromptRole::kComputes;
  request.computes = heir->get();
  --request.waiting;
  begin_at(**heir, {.tokens = request.prompt_reused, .whole_tokens = request.prompt_reused});
}

// One that others will be cloned from stays until they are.
void ActiveSet::retire_ended(Executor& executor, Clock::Duration now, std::vector<std::unique_ptr<ActiveSequence>>& gone) {
  const auto is_needed = [](const ActiveSequence& sequence) {
    return sequence.request->computes == &sequence && sequence.request->waiting > 0;
  };
  auto kept = sequences_.begin();
  for (auto& sequence : sequences_) {
    if (!sequence->ended || is_needed(*sequence)) {
      std::swap(*kept++, sequence);
      continue;
    }
    executor.release(sequence->sequence.id());
    // One that began and never ran may still wait for a copy.
    const Sequence& history = sequence->sequence;
    if (sequence->succeeded && history.computed() > history.cached()) {
      sequence->lifecycle.complete(history.tokens().first(static_cast<std::size_t>(history.computed())), now);
    } else {
      sequence->lifecycle.drop();
    }
    gone.push_back(std::move(sequence));
  }
  sequences_.erase(kept, sequences_.end());
}

}  // namespace linnet
