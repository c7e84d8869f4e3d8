#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace linnet {
namespace {

double blended(double from, double to, double share) { return from + (to - from) * share; }

// Long wavelengths are stretched whole, short ones not at all, and those between by where they lie (Llama 3.1).
double llama3_frequency(const RopeConfig& config, double frequency) {
  const double turns = config.original_context * frequency / (2 * std::numbers::pi);  // within the original context
  const auto low = static_cast<double>(config.low_freq_factor);
  const auto high = static_cast<double>(config.high_freq_factor);
  const double share = turns < low ? 0 : turns > high ? 1 : (turns - low) / (high - low);
  return blended(frequency / static_cast<double>(config.factor), frequency, share);
}

// The index, as a real number, of the pair that turns `turns` times within the original context.
double pair_of_turns(const RopeConfig& config, std::int32_t dims, double turns) {
  return dims * std::log(config.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(static_cast<double>(config.theta)));
}

// Peng et al. 2023: pairs that turn often stay, those that turn rarely are stretched, with a ramp between them.
void stretch_yarn(const RopeConfig& config, std::vector<double>& frequencies) {
  const auto dims = static_cast<std::int32_t>(2 * frequencies.size());
  const double low = std::max(std::floor(pair_of_turns(config, dims, static_cast<double>(config.beta_fast))), 0.0);
  double high = std::min(std::ceil(pair_of_turns(config, dims, static_cast<double>(config.beta_slow))), dims - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = blended(frequencies[i], frequencies[i] / static_cast<double>(config.factor), stretched);
  }
}

double yarn_scale(double factor, double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; }

}  // namespace

RopeTable rope_table(const RopeConfig& config, std::int32_t head_dim) {
  const std::int32_t dims = config.dims == 0 ? head_dim : config.dims;
  CHECK(config.theta > 0 && dims >= 2 && dims % 2 == 0 && dims <= head_dim && config.factor > 0);
  const auto pairs = static_cast<std::size_t>(dims / 2);
  const auto factor = static_cast<double>(config.factor);
  RopeTable table;
  for (std::int32_t i = 0; i < dims / 2; ++i) {
    table.frequencies.push_back(std::pow(static_cast<double>(config.theta), -2.0 * i / dims));
  }
  switch (config.kind) {
    case RopeKind::kDefault:
      break;
    case RopeKind::kLinear:
      for (double& frequency : table.frequencies) frequency /= factor;
      break;
    case RopeKind::kLlama3:
      CHECK(config.original_context > 0 && config.low_freq_factor < config.high_freq_factor);
      for (double& frequency : table.frequencies) frequency = llama3_frequency(config, frequency);
      break;
    case RopeKind::kYarn:
      CHECK(config.original_context > 0 && config.theta > 1);
      stretch_yarn(config, table.frequencies);
      table.scale = static_cast<float>(yarn_scale(factor, static_cast<double>(config.mscale)) /
                                       yarn_scale(factor, static_cast<double>(config.mscale_all_dim)));
      break;
    case RopeKind::kLongRope:
      CHECK(config.long_factor.size() == pairs && config.original_context > 1);
      for (std::size_t i = 0; i < pairs; ++i) table.frequencies[i] /= static_cast<double>(config.long_factor[i]);
      if (factor > 1) table.scale = static_cast<float>(std::sqrt(1 + std::log(factor) / std::log(config.original_context)));
      break;
  }
  if (config.frequency_divisors.empty()) return table;
  CHECK(config.frequency_divisors.size() == pairs);
  for (std::size_t i = 0; i < pairs; ++i) table.frequencies[i] /= static_cast<double>(config.frequency_divisors[i]);
  return table;
}

void rope_angles(const RopeTable& table, std::int64_t position, float* cos, float* sin) {
  for (std::size_t i = 0; i < table.frequencies.size(); ++i) {
    const double angle = static_cast<double>(position) * table.frequencies[i];
    cos[i] = static_cast<float>(static_cast<double>(table.scale) * std::cos(angle));
    sin[i] = static_cast<float>(static_cast<double>(table.scale) * std::sin(angle));
  }
}

}  // namespace linnet
