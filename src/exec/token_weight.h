// A token's share of a distribution as an integer.
#pragma once

#include <bit>
#include <cstdint>

namespace linnet {

inline constexpr double kWeightOfOne = 0x1p40;     // the weight at x = 0; 2^20 tokens of it fit 64 bits
inline constexpr float kWeightlessBelow = -30.0F;  // weights of x up to here are 0: exp(-30) * 2^40 is 0.1

// round(exp(x) * 2^40) for x <= 0, -inf included: the same bits on every machine. Range reduction by Cody and Waite, a polynomial
// of degree 6, in all a relative error below 5e-7, and rounding by adding 2^52. No branch, so loops over it become vector code.
inline std::uint64_t weight_of(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  x = x < kWeightlessBelow ? kWeightlessBelow : x;
  const float shifted = x * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  // 2^(n + 40), from the integer n in the low bits of `shifted`.
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound) + 127U + 40U;
  const float scaled = p * std::bit_cast<float>(exponent << 23U);
  constexpr double kInteger = 0x1p52;
  return std::bit_cast<std::uint64_t>(static_cast<double>(scaled) + kInteger) - std::bit_cast<std::uint64_t>(kInteger);
}

}  // namespace linnet
