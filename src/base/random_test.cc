#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace linnet {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known-answer vectors published with Random123.
TEST(Random, PhiloxGivesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, EveryBitOfSeedAndStepCounts) {
  const std::uint64_t base = random_bits(0, 0);
  for (unsigned bit = 0; bit < 64; ++bit) {
    EXPECT_NE(random_bits(std::uint64_t{1} << bit, 0), base) << bit;
    EXPECT_NE(random_bits(0, std::uint64_t{1} << bit), base) << bit;
    EXPECT_NE(mix64(std::uint64_t{1} << bit), mix64(0)) << bit;
  }
}

TEST(Random, StreamIsUniform) {
  Rng rng(7);
  std::array<int, 10> counts{};
  int hits = 0;
  for (int i = 0; i < 10000; ++i) {
    ++counts[rng.below(10)];
    hits += rng.chance(0.25) ? 1 : 0;
  }
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_NEAR(hits, 2500, 200);
}

}  // namespace
}  // namespace linnet
