#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace linnet {
namespace {

// Made by mlx-lm 0.32.2's rope_utils.initialize_rope (f32), as 1 / its `_freqs`.
struct Golden {
  std::string name;
  std::int32_t head_dim;
  RopeConfig config;
  double scale;
  std::vector<double> frequencies;
};

std::vector<Golden> goldens() {
  return {
      {"llama3",
       16,
       {.kind = RopeKind::kLlama3, .theta = 500000, .factor = 8, .original_context = 8192},
       1,
       {1, 0.1939228, 0.03760603, 0.007292665, 0.0005248461, 3.428102e-05, 6.64787e-06, 1.289173e-06}},
      {"yarn",
       16,
       {.kind = RopeKind::kYarn, .factor = 4, .original_context = 2048},
       1.138629436111989,
       {1, 0.3162278, 0.1, 0.02569351, 0.00625, 0.001383496, 0.00025, 7.905694e-05}},
      {"yarn with two factors",
       64,
       {.kind = RopeKind::kYarn, .theta = 1e6, .factor = 40, .original_context = 4096, .mscale = 0.707F, .mscale_all_dim = 0.5F},
       1.064468903941252,
       {1,
        0.6493816,
        0.4216965,
        0.273842,
        0.1778279,
        0.1154782,
        0.07498942,
        0.04394882,
        0.02545634,
        0.01452869,
        0.008134481,
        0.004438067,
        0.002333716,
        0.001159428,
        0.0005217022,
        0.000188641,
        2.5e-05,
        1.623454e-05,
        1.054241e-05,
        6.846049e-06,
        4.445699e-06,
        2.886955e-06,
        1.874736e-06,
        1.217419e-06,
        7.905694e-07,
        5.133813e-07,
        3.333803e-07,
        2.164911e-07,
        1.405853e-07,
        9.129353e-08,
        5.928434e-08,
        3.849817e-08}},
      {"longrope",
       8,
       {.kind = RopeKind::kLongRope,
        .factor = 32,
        .original_context = 4096,
        .short_factor = {1, 1, 1, 1},
        .long_factor = {1, 1.5F, 3, 30}},
       1.1902380714238083,
       {1, 0.06666667, 0.003333333, 3.333333e-05}},
      {"the first half of a head", 8, {.theta = 100, .dims = 4}, 1, {1, 0.1}},
      {"linear", 4, {.kind = RopeKind::kLinear, .theta = 100, .factor = 4}, 1, {0.25, 0.025}},
      {"divisors", 4, {.theta = 100, .frequency_divisors = {1, 4}}, 1, {1, 0.025}},
  };
}

TEST(Rope, FrequenciesAreThoseOfMlxLm) {
  for (const Golden& golden : goldens()) {
    const RopeTable table = rope_table(golden.config, golden.head_dim);
    EXPECT_NEAR(static_cast<double>(table.scale), golden.scale, 1e-7) << golden.name;
    ASSERT_EQ(table.frequencies.size(), golden.frequencies.size()) << golden.name;
    for (std::size_t i = 0; i < golden.frequencies.size(); ++i)
      EXPECT_NEAR(table.frequencies[i] / golden.frequencies[i], 1, 2e-6) << golden.name << ' ' << i;
  }
}

TEST(Rope, KindsThatDoNotStretchChangeNothing) {
  const RopeTable plain = rope_table({}, 64);
  const RopeConfig unstretched[] = {
      {.kind = RopeKind::kLinear},
      {.kind = RopeKind::kLlama3, .original_context = 8192},
      {.kind = RopeKind::kYarn, .original_context = 4096},
      {.kind = RopeKind::kLongRope, .original_context = 4096, .long_factor = std::vector<float>(32, 1)}};
  for (const RopeConfig& config : unstretched) {
    const RopeTable table = rope_table(config, 64);
    EXPECT_EQ(table.frequencies, plain.frequencies);
    EXPECT_EQ(table.scale, 1.0F);
  }
}

TEST(Rope, AnglesAreExactFarFromTheStart) {
  const RopeTable table{.frequencies = {1, 1e-3}, .scale = 2};
  float cos[2];
  float sin[2];
  for (const std::int64_t position : {0, 1, 131071, 10'000'000}) {
    rope_angles(table, position, cos, sin);
    for (std::size_t i = 0; i < 2; ++i) {
      const double angle = static_cast<double>(position) * table.frequencies[i];
      EXPECT_EQ(cos[i], static_cast<float>(2 * std::cos(angle)));
      EXPECT_EQ(sin[i], static_cast<float>(2 * std::sin(angle)));
    }
  }
}

}  // namespace
}  // namespace linnet
