// Decides what the next step computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sched/cost_budget.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace linnet {

struct PlannerLimits {
  std::int32_t rows_max = 1;
  std::int32_t step_tokens_max = 1;
  std::int32_t block_tokens = 1;
  double gap_us = 0;  // how long a step may keep decode rows waiting
  StepCost cost;
};

// One sequence's part of a step.
struct Share {
  std::size_t index = 0;    // of the sequence, in what plan() was given
  std::int32_t inputs = 0;  // its next uncomputed tokens

  bool operator==(const Share&) const = default;
};

// A plan and whom it serves; reused from step to step. shares[i] belongs to plan.rows[i].
struct Schedule {
  StepPlan plan;
  std::vector<Share> shares;
  double cost_us = 0;  // as the executor promises
};

// Rules, in this order:
//  1. At most rows_max sequences take part: those that waited longest (Sequence::last_step) if there are more.
//  2. Every decode row among them gets its one input.
//  3. Prefill fills the rest: three quarters of gap_us, less what the decode rows cost (divided by `cost_ratio`, true over
//  promised
//     cost), or kStepTokensAlone inputs and kGapsAlone gaps where there are none. Up to one block of inputs is let in even if
//     that is used up, as far as a quarter of gap_us pays for it, and never less than one input: prefill moves under any load.
//  4. Of that, the sequence that was admitted first gets at least half, so none waits forever; the other half goes to those with
//  the
//     least left to compute, so a short prompt does not wait behind a long one; what they leave goes to the first again.
//  5. A chunk that is not a prompt's last ends at a block's end, but for those of rule 3's end.
class Planner {
 public:
  explicit Planner(const PlannerLimits& limits);

  // `runnable` in order of admission, each with an input to compute. Pure: the same arguments give the same schedule. Empty if
  // there is nothing to run. Allocates only until the schedule has grown to its largest size.
  void plan(std::span<const Sequence* const> runnable, double cost_ratio, Schedule& schedule) const;

  // Inputs of a step without decode rows, and its length in gaps: larger ones compute hardly faster, and answer a cancel, a new
  // arrival or a stop later.
  static constexpr std::int32_t kStepTokensAlone = 512;
  static constexpr double kGapsAlone = 5;

 private:
  struct Allowance {
    std::int32_t inputs;
    double us;
  };

  void choose_rows(std::span<const Sequence* const> runnable, Schedule& schedule) const;
  Allowance prefill_allowance(std::span<const Sequence* const> runnable, std::span<const Share> decodes, double cost_ratio) const;
  void share_out(std::span<const Sequence* const> runnable, std::span<Share> prefills, Allowance allowance,
                 double least_us) const;
  void grow(const Sequence& sequence, Share& share, Allowance part, Allowance& left) const;
  void lay_out(std::span<const Sequence* const> runnable, Schedule& schedule) const;

  PlannerLimits limits_;
};

}  // namespace linnet
