// Rotary positions as frequencies: what every backend's rope follows, computed once from a model's configuration.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace linnet {

// Pair i of the first 2 * frequencies.size() values of a head turns by position * frequencies[i] radians and is multiplied by
// `scale`; what lies beyond is left alone.
struct RopeTable {
  std::vector<double> frequencies;
  float scale = 1.0F;
};

// For heads of `head_dim` values; as mlx-lm has it, in f64. Longrope takes `long_factor` for every length, as mlx-lm does: a
// choice by the length so far would change what is cached already.
RopeTable rope_table(const RopeConfig& config, std::int32_t head_dim);

// scale * cos and scale * sin of every pair's angle at a position, computed in f64.
void rope_angles(const RopeTable& table, std::int64_t position, float* cos, float* sin);

}  // namespace linnet
