// Rotary positions as mlx-lm computes them, of every kind in model/config.h.
#pragma once

#include <mlx/mlx.h>

#include <cstdint>
#include <optional>

#include "model/config.h"

namespace linnet::mlx_backend {

namespace mx = mlx::core;

// Immutable. Its frequencies are evaluated on `device`, in the order of operations that mlx-lm has: an oracle's last bits depend
// on it.
class Rope {
 public:
  Rope(const ModelConfig& config, mx::Device device);

  // x: [1, heads, tokens, head_dim], its first token at position `offset`.
  mx::array rotate(const mx::array& x, std::int32_t offset) const;

 private:
  mx::array scaled(const mx::array& x) const;

  mx::Device device_;
  std::int32_t dims_;
  bool interleaved_;
  std::optional<float> theta_;            // or
  std::optional<mx::array> wavelengths_;  // [dims / 2], in positions / (2 pi)
  float position_scale_ = 1.0F;
  double input_scale_ = 1.0;
};

}  // namespace linnet::mlx_backend
