// The line between integers and tensors: everything a backend does for the engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "exec/row_context.h"
#include "linnet/event.h"
#include "linnet/sampling.h"
#include "linnet/status.h"
#include "sched/step_plan.h"

namespace linnet {

enum class Ticket : std::uint64_t {};  // one launched step

// How one row of a launched plan turns logits into tokens (Sampler, src/exec/sampler.h); in the order of StepPlan::rows, one for
// each row (unused where samples = 0).
struct RowSampling {
  SamplingParams params;
  RowContext context;  // of its last sample; RowContext::of_sample gives that of the others
};

// Tokens of one row, in order; `samples` of them. `failed`: its logits were not finite; its tokens mean nothing, other rows
// stand. `logprobs_begin`: where those of its tokens begin, one for each, if its RowSampling asks for logprobs.
struct RowResult {
  std::int32_t token_begin = 0;  // into StepResult::tokens
  std::int32_t token_count = 0;
  std::int32_t logprobs_begin = 0;  // into StepResult::logprobs
  bool failed = false;

  bool operator==(const RowResult&) const = default;
};

struct StepResult {
  std::vector<RowResult> rows;  // in the order of StepPlan::rows
  std::vector<TokenId> tokens;
  std::vector<TokenLogprobs> logprobs;  // of the rows that ask for them

  std::span<const TokenId> of(const RowResult& row) const {
    return std::span(tokens).subspan(static_cast<std::size_t>(row.token_begin), static_cast<std::size_t>(row.token_count));
  }
  bool operator==(const StepResult&) const = default;
};

// What the planner needs to know of a backend. Costs are measured or estimated by it: microseconds of a step =
// fixed + per_token * inputs + per_token_context * sum over inputs of their position.
struct ExecutorInfo {
  std::int32_t vocabulary = 0;
  std::int32_t context_max = 0;      // tokens of prompt + answer
  std::int32_t block_tokens = 0;     // tokens in a KV block
  std::int32_t block_count = 0;      // in the KV pool; ids 0 .. block_count - 1
  std::uint64_t block_bytes = 0;     // of one; 0: KV is kept by sequence, blocks are numbers only, and no cache can share them
  std::int32_t step_tokens_max = 0;  // inputs of all rows of one step
  std::int32_t step_rows_max = 0;
  double step_cost_fixed_us = 0;
  double step_cost_per_token_us = 0;
  double step_cost_per_token_context_us = 0;
  // launch() returns while a device computes: the engine then does the last step's bookkeeping meanwhile. Where the kernels run
  // on the engine's own cores there is nothing to gain.
  bool overlaps = false;
  std::string numerics_id;  // kernel set, version, KV layout: part of every cache and checkpoint key
};

// Called from the engine's thread alone, in the order launch, sample, collect; one step at a time.
// Invariants: 1. A row's tokens depend on its own history and RowSampling only, bit for bit, whatever else is in the plan and
// however its history was cut into steps. 2. No call allocates after the first steps. 3. A failed step (error from collect)
// leaves every block usable; the control plane ends the rows that were in it.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual const ExecutorInfo& info() const = 0;
  // The calling thread is the engine's own and will make all later calls: a backend may pin it.
  virtual void adopt_thread() {}
  // Begins a forward pass. `plan` stays alive and unchanged until collect() returns.
  virtual Ticket launch(const StepPlan& plan) = 0;
  // How to sample; may be computed while the forward pass runs. `rows` stays alive until collect() returns.
  virtual void sample(Ticket ticket, std::span<const RowSampling> rows) = 0;
  // The one synchronisation of a step. The result stays valid until the next launch().
  virtual Result<const StepResult*> collect(Ticket ticket) = 0;
  // No later plan will name this sequence: what is kept for it alone may go. Between steps; also of sequences that never ran.
  virtual void release(SequenceId /*sequence*/) {}
};

}  // namespace linnet
