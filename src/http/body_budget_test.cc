#include "http/body_budget.h"

#include <gtest/gtest.h>

#include <utility>

namespace linnet::http {
namespace {

TEST(BodyBudget, LeasesShareOneLimit) {
  BodyBudget budget(100);
  BodyLease first(budget);
  EXPECT_TRUE(first.grow_to(60));
  EXPECT_TRUE(first.grow_to(10));  // never shrinks
  EXPECT_EQ(budget.bytes_used(), 60U);
  {
    BodyLease second(budget);
    EXPECT_TRUE(second.grow_to(40));
    EXPECT_FALSE(second.grow_to(41));
    EXPECT_EQ(budget.bytes_used(), 100U);
  }
  EXPECT_EQ(budget.bytes_used(), 60U);
  BodyLease moved = std::move(first);
  EXPECT_FALSE(first.grow_to(61));
  EXPECT_TRUE(moved.grow_to(100));
  moved = BodyLease();
  EXPECT_EQ(budget.bytes_used(), 0U);
}

}  // namespace
}  // namespace linnet::http
