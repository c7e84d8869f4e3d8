#include "sched/cost_budget.h"

#include <algorithm>

namespace linnet {

double inputs_cost_us(const StepCost& cost, std::int32_t position, std::int32_t count) {
  const double n = count;
  const double position_sum = n * position + n * (n - 1) / 2;
  return cost.per_token_us * n + cost.per_token_context_us * position_sum;
}

std::int32_t inputs_within(const StepCost& cost, std::int32_t position, std::int32_t count_max, double budget_us) {
  if (count_max <= 0 || inputs_cost_us(cost, position, 1) > budget_us) return 0;
  std::int32_t fits = 1;
  std::int32_t ends = count_max + 1;  // the first count known not to fit, or beyond the maximum
  while (ends - fits > 1) {
    const std::int32_t middle = fits + (ends - fits) / 2;
    if (inputs_cost_us(cost, position, middle) <= budget_us) {
      fits = middle;
    } else {
      ends = middle;
    }
  }
  return fits;
}

void CostCalibration::observe(double predicted_us, double actual_us) {
  if (!(predicted_us > 0) || !(actual_us >= 0)) return;
  const double seen = std::clamp(actual_us / predicted_us, kRatioMin, kRatioMax);
  const double weight = seen > ratio_ ? 0.25 : 1.0 / 16;
  ratio_ += weight * (seen - ratio_);
}

}  // namespace linnet
