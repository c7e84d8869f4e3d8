// Counter-based randomness: a number depends on its key and its counter, never on what was drawn before or elsewhere.
#pragma once

#include <array>
#include <cstdint>

namespace linnet {

// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a bijection of the 128-bit counter
// under the 64-bit key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// 64 uniform bits for one (seed, step). All the randomness of a sampled token; a second decision at the same step takes another
// `stream`.
std::uint64_t random_bits(std::uint64_t seed, std::uint64_t step, std::uint32_t stream = 0);

// Mixes 64 bits so that each input bit moves every output bit (the finaliser of SplitMix64). For hashes, not for secrets.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

// A stream of such numbers, for simulations and tests. Not thread-safe; a copy continues the same stream.
class Rng {
 public:
  explicit Rng(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t bits() { return random_bits(seed_, drawn_++); }
  // Uniform in 0 .. bound - 1; bound >= 1.
  std::uint64_t below(std::uint64_t bound) { return bits() % bound; }
  bool chance(double probability) { return static_cast<double>(bits() >> 11U) * 0x1p-53 < probability; }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

}  // namespace linnet
