#include "weights/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace linnet {
namespace {

constexpr std::uint32_t kInfinity = 0x7C00;

TEST(Half, EveryValueIsWhatTheFormatSays) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits));
    const int exponent = static_cast<int>((bits >> 10U) & 31U);
    const int fraction = static_cast<int>(bits & 0x3FFU);
    ASSERT_EQ(std::signbit(value), (bits & 0x8000U) != 0) << bits;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(value), fraction != 0) << bits;
      ASSERT_EQ(std::isinf(value), fraction == 0) << bits;
      continue;
    }
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(std::fabs(static_cast<double>(value)), magnitude) << bits;
  }
}

TEST(Half, ThereAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(half_to_float(float_to_half(value)))) << bits;
    } else {
      ASSERT_EQ(float_to_half(value), half) << bits;
    }
  }
}

// Between each half and its successor: the middle goes to the even one, everything else to the nearer one.
TEST(Half, RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < kInfinity; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    const float above = bits + 1 == kInfinity ? 65536.0F : half_to_float(high);
    const float middle = (half_to_float(low) + above) / 2;  // exact: a float has 13 more bits
    const std::uint16_t even = bits % 2 == 0 ? low : high;
    ASSERT_EQ(float_to_half(middle), even) << bits;
    ASSERT_EQ(float_to_half(std::nextafterf(middle, 0.0F)), low) << bits;
    ASSERT_EQ(float_to_half(std::nextafterf(middle, 1e9F)), high) << bits;
    ASSERT_EQ(float_to_half(-middle), even | 0x8000U) << bits;
  }
  EXPECT_EQ(float_to_half(1e9F), kInfinity);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::infinity()), 0xFC00U);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::denorm_min()), 0U);
}

TEST(Half, BrainFloatIsTheUpperHalf) {
  EXPECT_EQ(bfloat16_to_float(0x3F80), 1.0F);
  EXPECT_EQ(bfloat16_to_float(0xC2F7), -123.5F);
  EXPECT_EQ(bfloat16_to_float(0x0001), 0x1p-133F);
  EXPECT_TRUE(std::isinf(bfloat16_to_float(0x7F80)));
  EXPECT_TRUE(std::isnan(bfloat16_to_float(0x7FC0)));
}

}  // namespace
}  // namespace linnet
