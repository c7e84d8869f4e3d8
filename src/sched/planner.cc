#include "sched/planner.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace linnet {
namespace {

// The cost of steps is an estimate, and admission and emission take their time too: a step is planned for this share of the gap.
constexpr double kPlannedShareOfGap = 0.75;

// What prefill may take of the gap where decode rows use it up.
constexpr double kLeastShareOfGap = 0.25;

}  // namespace

Planner::Planner(const PlannerLimits& limits) : limits_(limits) {
  CHECK(limits_.rows_max >= 1);
  CHECK(limits_.step_tokens_max >= limits_.rows_max);
  CHECK(limits_.block_tokens >= 1);
}

void Planner::plan(std::span<const Sequence* const> runnable, double cost_ratio, Schedule& schedule) const {
  schedule.plan.clear();
  schedule.shares.clear();
  schedule.cost_us = 0;
  if (runnable.empty()) return;

  choose_rows(runnable, schedule);
  const auto prefills = std::partition(schedule.shares.begin(), schedule.shares.end(),
                                       [&](const Share& share) { return runnable[share.index]->decoding(); });
  for (auto share = schedule.shares.begin(); share != prefills; ++share) share->inputs = 1;
  const Allowance allowance = prefill_allowance(runnable, {schedule.shares.begin(), prefills}, cost_ratio);
  share_out(runnable, {prefills, schedule.shares.end()}, allowance, limits_.gap_us * kLeastShareOfGap / cost_ratio);
  std::erase_if(schedule.shares, [](const Share& share) { return share.inputs == 0; });
  // The order of rows means nothing to their tokens; that of admission is the easiest to read in a trace.
  std::sort(schedule.shares.begin(), schedule.shares.end(), [](const Share& a, const Share& b) { return a.index < b.index; });
  lay_out(runnable, schedule);
}

void Planner::choose_rows(std::span<const Sequence* const> runnable, Schedule& schedule) const {
  for (std::size_t index = 0; index < runnable.size(); ++index) schedule.shares.push_back({.index = index});
  const auto rows_max = static_cast<std::size_t>(limits_.rows_max);
  if (runnable.size() <= rows_max) return;
  const auto waited_longer = [&](const Share& a, const Share& b) {
    const std::uint64_t a_step = runnable[a.index]->last_step();
    const std::uint64_t b_step = runnable[b.index]->last_step();
    return a_step != b_step ? a_step < b_step : a.index < b.index;
  };
  std::nth_element(schedule.shares.begin(), schedule.shares.begin() + limits_.rows_max, schedule.shares.end(), waited_longer);
  schedule.shares.resize(rows_max);
}

Planner::Allowance Planner::prefill_allowance(std::span<const Sequence* const> runnable, std::span<const Share> decodes,
                                              double cost_ratio) const {
  if (decodes.empty()) {
    return {.inputs = std::min(limits_.step_tokens_max, kStepTokensAlone),
            .us = limits_.gap_us * kGapsAlone / cost_ratio - limits_.cost.fixed_us};
  }
  double us = limits_.gap_us * kPlannedShareOfGap / cost_ratio - limits_.cost.fixed_us;
  for (const Share& share : decodes) us -= inputs_cost_us(limits_.cost, runnable[share.index]->computed(), 1);
  return {.inputs = limits_.step_tokens_max - static_cast<std::int32_t>(decodes.size()), .us = us};
}

void Planner::share_out(std::span<const Sequence* const> runnable, std::span<Share> prefills, Allowance allowance,
                        double least_us) const {
  if (prefills.empty()) return;
  const auto first =
      std::min_element(prefills.begin(), prefills.end(), [](const Share& a, const Share& b) { return a.index < b.index; });
  std::iter_swap(prefills.begin(), first);
  Share& oldest = prefills.front();
  const std::span<Share> others = prefills.subspan(1);
  std::sort(others.begin(), others.end(), [&](const Share& a, const Share& b) {
    const std::int32_t a_left = runnable[a.index]->uncomputed();
    const std::int32_t b_left = runnable[b.index]->uncomputed();
    return a_left != b_left ? a_left < b_left : a.index < b.index;
  });

  Allowance left = allowance;
  if (!others.empty()) grow(*runnable[oldest.index], oldest, {(allowance.inputs + 1) / 2, allowance.us / 2}, left);
  for (Share& share : others) grow(*runnable[share.index], share, left, left);
  grow(*runnable[oldest.index], oldest, left, left);

  // What must move however little time there is: a block, or the part of it that a short while pays for.
  std::int32_t prefilled = 0;
  for (const Share& share : prefills) prefilled += share.inputs;
  const Sequence& sequence = *runnable[oldest.index];
  const std::int32_t missing = std::min({limits_.block_tokens - prefilled, left.inputs, sequence.uncomputed() - oldest.inputs});
  const std::int32_t paid =
      inputs_within(limits_.cost, sequence.computed() + oldest.inputs, missing, std::max(left.us, least_us));
  if (missing > 0) oldest.inputs += prefilled > 0 ? paid : std::max(paid, 1);
}

// Gives `share` as many further inputs as `part` allows, and takes them from `left`.
void Planner::grow(const Sequence& sequence, Share& share, Allowance part, Allowance& left) const {
  const std::int32_t position = sequence.computed() + share.inputs;
  const std::int32_t wanted = sequence.uncomputed() - share.inputs;
  std::int32_t count = inputs_within(limits_.cost, position, std::min(wanted, part.inputs), part.us);
  if (count < wanted) count -= std::min(count, (position + count) % limits_.block_tokens);
  share.inputs += count;
  left.inputs -= count;
  left.us -= inputs_cost_us(limits_.cost, position, count);
}

void Planner::lay_out(std::span<const Sequence* const> runnable, Schedule& schedule) const {
  StepPlan& plan = schedule.plan;
  schedule.cost_us = limits_.cost.fixed_us;
  for (const Share& share : schedule.shares) {
    const Sequence& sequence = *runnable[share.index];
    const auto inputs =
        sequence.tokens().subspan(static_cast<std::size_t>(sequence.computed()), static_cast<std::size_t>(share.inputs));
    const std::int32_t covered = sequence.computed() + share.inputs;
    const std::int32_t blocks = (covered + limits_.block_tokens - 1) / limits_.block_tokens;
    const auto table = sequence.block_table().first(static_cast<std::size_t>(blocks));
    plan.rows.push_back({.sequence = sequence.id(),
                         .position = sequence.computed(),
                         .samples = covered == sequence.known() ? 1 : 0,
                         .sample_step = static_cast<std::uint64_t>(sequence.generated()),
                         .input_begin = static_cast<std::int32_t>(plan.tokens.size()),
                         .input_count = share.inputs,
                         .block_begin = static_cast<std::int32_t>(plan.blocks.size()),
                         .block_count = blocks});
    plan.tokens.insert(plan.tokens.end(), inputs.begin(), inputs.end());
    plan.blocks.insert(plan.blocks.end(), table.begin(), table.end());
    schedule.cost_us += inputs_cost_us(limits_.cost, sequence.computed(), share.inputs);
  }
}

}  // namespace linnet
