#include "sched/cost_budget.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace linnet {
namespace {

TEST(CostBudget, CostIsTheSumOverInputs) {
  const StepCost cost{.fixed_us = 1000, .per_token_us = 3, .per_token_context_us = 0.5};
  for (const std::int32_t position : {0, 1, 100, 60000}) {
    for (const std::int32_t count : {0, 1, 2, 77}) {
      double sum = 0;
      for (std::int32_t index = 0; index < count; ++index) sum += 3 + 0.5 * (position + index);
      EXPECT_NEAR(inputs_cost_us(cost, position, count), sum, 1e-6 * sum);
    }
  }
}

TEST(CostBudget, InputsWithinIsTheLargestCountThatFits) {
  Rng rng(5);
  for (int round = 0; round < 2000; ++round) {
    const StepCost cost{.per_token_us = static_cast<double>(rng.below(100)) / 7,
                        .per_token_context_us = static_cast<double>(rng.below(10)) / 13};
    const auto position = static_cast<std::int32_t>(rng.below(2000));
    const auto count_max = static_cast<std::int32_t>(rng.below(600));
    const double budget = static_cast<double>(rng.below(40000)) - 100;
    const std::int32_t count = inputs_within(cost, position, count_max, budget);
    ASSERT_GE(count, 0);
    ASSERT_LE(count, count_max);
    if (count > 0) {
      ASSERT_LE(inputs_cost_us(cost, position, count), budget);
    }
    if (count < count_max) {
      ASSERT_GT(inputs_cost_us(cost, position, count + 1), budget);
    }
  }
  EXPECT_EQ(inputs_within({.per_token_us = 1}, 0, 512, std::numeric_limits<double>::infinity()), 512);
}

TEST(CostCalibration, RisesFastFallsSlowlyAndStaysInItsBounds) {
  CostCalibration calibration;
  EXPECT_EQ(calibration.ratio(), 1);
  for (int step = 0; step < 20; ++step) calibration.observe(100, 300);
  EXPECT_NEAR(calibration.ratio(), 3, 0.05);
  calibration.observe(100, 100);
  EXPECT_GT(calibration.ratio(), 2.8);
  for (int step = 0; step < 200; ++step) calibration.observe(100, 1e9);
  EXPECT_LE(calibration.ratio(), CostCalibration::kRatioMax);
  for (int step = 0; step < 1000; ++step) calibration.observe(100, 0);
  EXPECT_GE(calibration.ratio(), CostCalibration::kRatioMin);
  const double before = calibration.ratio();
  calibration.observe(0, 5);
  EXPECT_EQ(calibration.ratio(), before);
}

}  // namespace
}  // namespace linnet
