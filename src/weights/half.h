// Sixteen-bit floats to float and back, exactly, without the processor's help: the definition that faster code is measured
// against.
#pragma once

#include <bit>
#include <cstdint>

namespace linnet {

// IEEE 754 binary16. Every value has its float; a NaN stays a NaN (quiet) and keeps its payload.
constexpr float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, which a float holds as a normal number
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) {
    const std::uint32_t quiet = fraction == 0 ? 0U : 0x400000U;
    return std::bit_cast<float>(sign | 0x7F800000U | quiet | (fraction << 13U));
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
}

// The nearest half, ties to even; what is too large becomes infinite.
constexpr std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13U) & 0x3FFU));
  if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65520 and above
  // Significand and how far it lies below the half's last place.
  const std::uint32_t exponent = magnitude >> 23U;
  if (exponent < 102) return sign;  // below 2^-25: half of the least subnormal
  const bool normal = exponent >= 113;
  const std::uint32_t significand = normal ? magnitude - (112U << 23U) : (magnitude & 0x7FFFFFU) | 0x800000U;
  const std::uint32_t shift = normal ? 13U : 126U - exponent;
  const std::uint32_t kept = significand >> shift;
  const std::uint32_t rest = significand & ((1U << shift) - 1U);
  const std::uint32_t middle = 1U << (shift - 1U);
  const bool up = rest > middle || (rest == middle && (kept & 1U) != 0);
  return static_cast<std::uint16_t>(sign | (kept + (up ? 1U : 0U)));
}

// The upper half of a float.
constexpr float bfloat16_to_float(std::uint16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U); }

}  // namespace linnet
