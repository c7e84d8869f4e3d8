// How numbers lie inside GGUF's blocks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weights/half.h"

namespace linnet {

static_assert(std::endian::native == std::endian::little, "the formats are little-endian, and read as they lie");

template <class T>
T load_little(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline float load_half(const std::byte* at) { return half_to_float(load_little<std::uint16_t>(at)); }

constexpr int low_nibble(std::byte b) { return static_cast<int>(b & std::byte{0x0F}); }
constexpr int high_nibble(std::byte b) { return static_cast<int>(b >> 4); }

// Bit 4 of element i of a block is bit i of the 32 at `bits`.
constexpr int fifth_bit(std::uint32_t bits, int i) { return static_cast<int>((bits >> i) & 1U) << 4; }

struct ScaleAndMinimum {
  int scale;
  int minimum;
};

// Q4_K and Q5_K: eight pairs of 6-bit numbers in 12 bytes. Pairs 0 .. 3 are the low 6 bits of bytes i and i + 4; pairs 4 .. 7 are
// the nibbles of byte i + 4, with the upper 2 bits of bytes i - 4 and i on top.
constexpr ScaleAndMinimum six_bit_pair(const std::byte* packed, int i) {
  const auto at = [&](int j) { return static_cast<int>(packed[j]); };
  if (i < 4) return {at(i) & 63, at(i + 4) & 63};
  return {(at(i + 4) & 0x0F) | ((at(i - 4) >> 6) << 4), (at(i + 4) >> 4) | ((at(i) >> 6) << 4)};
}

}  // namespace linnet
