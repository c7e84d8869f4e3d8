// f16 to f32 and back in plain integers, for code that has no instruction for it. Correct also while subnormals count as zero.
#pragma once

#include <bit>
#include <cstdint>

namespace linnet::cpu {

// Exact.
constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t magnitude = half & 0x7fffU;
  if (magnitude >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
  if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
  // Subnormal halves: 2^-14 (1 + m / 1024) - 2^-14, normal numbers of f32 all along.
  const float value = std::bit_cast<float>(0x38800000U | magnitude << 13) - std::bit_cast<float>(0x38800000U);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
}

// Rounded to nearest, ties to even; beyond 65519 it is infinity; NaN stays NaN.
constexpr std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return static_cast<std::uint16_t>(sign | 0x7e00U);
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // 65520 rounds up
  if (magnitude >= 0x38800000U) {
    const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
  }
  if (magnitude <= 0x33000000U) return static_cast<std::uint16_t>(sign);  // up to 2^-25: rounds to zero
  const std::uint32_t shift = 126U - (magnitude >> 23);                   // of the 24-bit significand, in units of 2^-24
  const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
  const std::uint32_t half_unit = 1U << (shift - 1);
  const std::uint32_t odd = significand >> shift & 1U;
  return static_cast<std::uint16_t>(sign | ((significand + half_unit - 1U + odd) >> shift));
}

}  // namespace linnet::cpu
