// Drives an executor without an engine: chosen chunks, chosen company, every logit kept.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "engine/executor.h"
#include "sched/step_plan.h"

namespace linnet {

// One greedy sequence: its prompt is fed in chunks, then it decodes.
struct DrivenSequence {
  std::vector<TokenId> tokens;  // prompt, then what was generated
  std::int32_t prompt_count = 0;
  std::int32_t chunk = 0;     // inputs a step while the prompt is fed; 0: all that fit
  std::int32_t generate = 0;  // tokens to generate
  std::int32_t computed = 0;
  std::vector<BlockId> blocks;
  std::vector<std::vector<float>> logits;  // of each generated token

  std::int32_t generated() const { return static_cast<std::int32_t>(tokens.size()) - prompt_count; }
  bool done() const { return generated() == generate; }
};

class SequenceDriver {
 public:
  // Of either backend: one that hands out its last step's logits.
  template <class BackendExecutor>
  explicit SequenceDriver(BackendExecutor& executor) : executor_(&executor), logits_([&executor] { return executor.logits(); }) {}

  // Runs all sequences together, in as many steps as it takes. Blocks are taken from the pool in an order of `shuffle_seed`.
  void run(std::vector<DrivenSequence>& sequences, std::uint64_t shuffle_seed = 1);
  // Logits of the last `samples` of `tokens`, fed in one go after what `sequence` has computed; the tokens join it.
  std::vector<std::vector<float>> feed(DrivenSequence& sequence, std::span<const TokenId> tokens, std::int32_t samples);
  void assign_blocks(std::vector<DrivenSequence>& sequences, std::uint64_t shuffle_seed) const;

 private:
  void step(std::vector<DrivenSequence>& sequences);
  void plan_row(DrivenSequence& sequence, std::size_t index, std::int32_t count, std::int32_t samples);

  Executor* executor_;
  std::function<std::span<const float>()> logits_;
  StepPlan plan_;
  std::vector<RowSampling> sampling_;
};

}  // namespace linnet
