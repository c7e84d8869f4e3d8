// Bounds of rotary positions, whatever file describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/config.h"

namespace linnet {

// What is wrong with `rope` for heads of `head_dim` elements, as "rope factor is 0.5; 1 to 1e+06 are allowed"; empty: nothing.
// Only the fields of its kind are looked at.
std::optional<std::string> rope_problem(const RopeConfig& rope, std::int32_t head_dim);

// "0.5", for messages.
std::string number_text(double value);

}  // namespace linnet
