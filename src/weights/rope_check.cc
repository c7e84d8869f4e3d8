#include "weights/rope_check.h"

#include <cstdio>
#include <span>
#include <vector>

#include "weights/config_limits.h"

namespace linnet {
namespace {

struct Bound {
  const char* name;
  double value;
  double min;
  double max;
};

std::optional<std::string> bound_problem(const Bound& bound) {
  if (bound.value >= bound.min && bound.value <= bound.max) return std::nullopt;
  return "rope " + std::string(bound.name) + " is " + number_text(bound.value) + "; " + number_text(bound.min) + " to " +
         number_text(bound.max) + " are allowed";
}

std::optional<std::string> list_problem(const char* name, std::span<const float> values, std::int32_t head_dim) {
  const auto wanted = static_cast<std::size_t>(head_dim / 2);
  if (values.size() != wanted) {
    return "rope " + std::string(name) + " has " + std::to_string(values.size()) + " numbers; " + std::to_string(wanted) +
           " are wanted, half of a head";
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0 && values[i] <= 1e6F) continue;
    return "rope " + std::string(name) + " has " + number_text(static_cast<double>(values[i])) + " at index " +
           std::to_string(i) + "; it must be above 0 and at most 1e6";
  }
  return std::nullopt;
}

std::vector<Bound> bounds_of(const RopeConfig& rope) {
  std::vector<Bound> bounds = {{"theta", static_cast<double>(rope.theta), 1, 1e12}};
  if (rope.kind != RopeKind::kDefault) bounds.push_back({"factor", static_cast<double>(rope.factor), 1, 1e6});
  if (rope.kind != RopeKind::kDefault && rope.kind != RopeKind::kLinear) {
    bounds.push_back(
        {"original context", static_cast<double>(rope.original_context), 1, static_cast<double>(ConfigLimits::kContextMax)});
  }
  if (rope.kind == RopeKind::kLlama3) {
    bounds.push_back({"low_freq_factor", static_cast<double>(rope.low_freq_factor), 1e-3, 1e6});
    // Equal factors would divide by 0.
    bounds.push_back(
        {"high_freq_factor", static_cast<double>(rope.high_freq_factor), static_cast<double>(rope.low_freq_factor) + 1e-3, 1e6});
  }
  if (rope.kind == RopeKind::kYarn) {
    bounds.push_back({"beta_slow", static_cast<double>(rope.beta_slow), 1e-3, 1e6});
    bounds.push_back({"beta_fast", static_cast<double>(rope.beta_fast), static_cast<double>(rope.beta_slow), 1e6});
    bounds.push_back({"mscale", static_cast<double>(rope.mscale), 0, 1e3});
    bounds.push_back({"mscale_all_dim", static_cast<double>(rope.mscale_all_dim), 0, 1e3});
  }
  return bounds;
}

}  // namespace

std::optional<std::string> rope_problem(const RopeConfig& rope, std::int32_t head_dim) {
  for (const Bound& bound : bounds_of(rope)) {
    if (std::optional<std::string> problem = bound_problem(bound)) return problem;
  }
  if (!rope.frequency_divisors.empty()) {
    if (auto problem = list_problem("frequency divisors", rope.frequency_divisors, head_dim)) return problem;
  }
  if (rope.kind != RopeKind::kLongRope) return std::nullopt;
  if (auto problem = list_problem("short_factor", rope.short_factor, head_dim)) return problem;
  return list_problem("long_factor", rope.long_factor, head_dim);
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace linnet
