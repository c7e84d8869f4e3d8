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

ActiveSet::ActiveSet(const ActiveLimits& limits) : limits_(limits), pool_(limits.block_count) {
  sequences_.reserve(static_cast<std::size_t>(limits.rows_max) * kAdmittedPerRow);
}

bool ActiveSet::admit(const Submission& submission) {
  const auto choices = static_cast<std::int32_t>(submission.choices.size());
  if (sequences_.size() + submission.choices.size() > sequences_.capacity()) return false;
  const BlockNeed need =
      blocks_needed(static_cast<std::int32_t>(submission.request.prompt.size()), submission.limit, choices, limits_.block_tokens);
  if (need.shared + need.own * choices > pool_.available()) return false;
  OpenRequest& request = *submission.open;
  request.prompt_blocks = *pool_.take(need.shared);
  for (const Choice& choice : submission.choices) {
    sequences_.push_back(std::make_unique<ActiveSequence>(submission, choice, *pool_.take(need.own), limits_.vocabulary));
  }
  request.waiting = choices - 1;
  const auto first = sequences_.end() - choices;
  request.computes = first->get();
  std::for_each(first + 1, sequences_.end(), [](const auto& sequence) { sequence->role = PromptRole::kWaits; });
  return true;
}

std::int32_t ActiveSet::open() const {
  return static_cast<std::int32_t>(
      std::count_if(sequences_.begin(), sequences_.end(), [](const auto& sequence) { return !sequence->ended; }));
}

std::int32_t ActiveSet::open_with_room() const {
  return static_cast<std::int32_t>(std::count_if(sequences_.begin(), sequences_.end(),
                                                 [](const auto& sequence) { return !sequence->ended && sequence->has_room(); }));
}

void ActiveSet::begin_waiting(std::vector<SequenceClone>& clones) {
  for (const auto& sequence : sequences_) {
    if (sequence->ended || sequence->role != PromptRole::kWaits) continue;
    OpenRequest& request = *sequence->request;
    const ActiveSequence& source = *request.computes;
    if (!source.has_prompt()) continue;
    const std::int32_t tokens = sequence->sequence.prompt() - 1;
    SequenceClone clone{.from = source.sequence.id(), .to = sequence->sequence.id(), .tokens = tokens};
    clone.copies = tokens % limits_.block_tokens != 0;
    const auto last = static_cast<std::size_t>(tokens / limits_.block_tokens);
    clone.copy_from = source.sequence.block_table()[last];
    clone.copy_to = sequence->sequence.block_table()[last];
    clones.push_back(clone);
    if (tokens > 0) sequence->sequence.begin_at(tokens);
    sequence->role = PromptRole::kDone;
    --request.waiting;
  }
}

void ActiveSet::gather_runnable(std::vector<ActiveSequence*>& runnable) const {
  runnable.clear();
  for (const auto& sequence : sequences_) {
    const bool ready = !sequence->ended && sequence->role != PromptRole::kWaits;
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
}

// One that others will be cloned from stays until they are.
void ActiveSet::retire_ended(Executor& executor, std::vector<std::unique_ptr<ActiveSequence>>& gone) {
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
    sequence->blocks.release();
    if (sequence->request->open == 0) sequence->request->prompt_blocks.release();
    gone.push_back(std::move(sequence));
  }
  sequences_.erase(kept, sequences_.end());
}

}  // namespace linnet
