// A token's share of a distribution as an integer.
#pragma once

#include <cstdint>
#include <cstring>

namespace linnet {

inline constexpr double kWeightOfOne = 0x1p40;     // the weight at x = 0; 2^20 tokens of it fit 64 bits
inline constexpr float kWeightlessBelow = -30.0F;  // weights of x up to here are 0: exp(-30) * 2^40 is 0.1

// The compilers' own vectors: 16 bytes, which every 64-bit machine has. Loops with selects are not vectorised by themselves.
using Float4 = float __attribute__((vector_size(16)));
using Int4 = std::int32_t __attribute__((vector_size(16)));
using Double2 = double __attribute__((vector_size(16)));
using Weight2 = std::uint64_t __attribute__((vector_size(16)));

struct Weight4 {
  Weight2 low;   // of lanes 0 and 1
  Weight2 high;  // of lanes 2 and 3
};

inline Float4 load4(const float* values) {
  Float4 loaded;
  std::memcpy(&loaded, values, sizeof loaded);
  return loaded;
}

// round(exp(x) * 2^40) for each x <= 0, -inf included: the same bits on every machine. Range reduction by Cody and Waite, a
// polynomial of degree 6, in all a relative error below 5e-7, and rounding by adding 2^52.
inline Weight4 weights_of(Float4 x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;              // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  constexpr std::int32_t kRoundBits = 0x4B400000;    // of kRound
  constexpr std::int32_t kExponentOfOne = 127 + 40;  // of 2^40
  constexpr double kInteger = 0x1p52;
  x = x < kWeightlessBelow ? Float4{} + kWeightlessBelow : x;
  const Float4 shifted = x * kLog2E + kRound;
  const Float4 n = shifted - kRound;
  const Float4 r = (x - n * kLn2High) - n * kLn2Low;
  Float4 p = Float4{} + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  // 2^(n + 40), from the integer n in the low bits of `shifted`.
  const Int4 exponent = (reinterpret_cast<Int4>(shifted) - kRoundBits + kExponentOfOne) << 23;
  const Float4 scaled = p * reinterpret_cast<Float4>(exponent);
  const Double2 low = __builtin_convertvector(__builtin_shufflevector(scaled, scaled, 0, 1), Double2) + kInteger;
  const Double2 high = __builtin_convertvector(__builtin_shufflevector(scaled, scaled, 2, 3), Double2) + kInteger;
  const Weight2 integer = reinterpret_cast<Weight2>(Double2{} + kInteger);
  return {reinterpret_cast<Weight2>(low) - integer, reinterpret_cast<Weight2>(high) - integer};
}

inline std::uint64_t weight_of(float x) { return weights_of(Float4{x, x, x, x}).low[0]; }

}  // namespace linnet
