// What a step costs in time, and how much prefill fits beside rows that wait for their next token.
#pragma once

#include <cstdint>

namespace linnet {

// Microseconds of a step = fixed + per_token * inputs + per_token_context * sum over inputs of their position.
struct StepCost {
  double fixed_us = 0;
  double per_token_us = 0;
  double per_token_context_us = 0;

  bool operator==(const StepCost&) const = default;
};

// Cost of `count` inputs at positions position .. position + count - 1, without the fixed part.
double inputs_cost_us(const StepCost& cost, std::int32_t position, std::int32_t count);

// The largest count in 0 .. count_max whose inputs cost at most `budget_us`.
std::int32_t inputs_within(const StepCost& cost, std::int32_t position, std::int32_t count_max, double budget_us);

// How far the true cost of steps is from what the executor promised: a smoothed ratio that rises quickly and falls slowly, so
// that running rows keep their pace on a machine which is slower than it was measured to be, or busy. It moves the cuts between
// chunks only, which no token depends on. Engine's thread only.
class CostCalibration {
 public:
  void observe(double predicted_us, double actual_us);
  double ratio() const { return ratio_; }  // actual over predicted, kRatioMin .. kRatioMax

  static constexpr double kRatioMin = 0.25;
  static constexpr double kRatioMax = 16;

 private:
  double ratio_ = 1;
};

}  // namespace linnet
