// MLX's words for model files: each adds to the graph that mlx-lm builds, in its order of operations.
#pragma once

#include <mlx/mlx.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "backends/mlx/kv_cache.h"
#include "backends/mlx/matrix.h"
#include "backends/mlx/rope.h"
#include "base/ids.h"
#include "model/config.h"
#include "model/ops.h"

namespace linnet::mlx_backend {

using LayerCaches = std::vector<std::unique_ptr<LayerCache>>;  // [layers]

// One row's share of a step.
struct RowInputs {
  std::span<const TokenId> tokens;
  std::int32_t samples = 0;       // of the last tokens
  LayerCaches* caches = nullptr;  // all at the row's position
};

// Takes one row at a time: T are its tokens, so its numbers know no company. Tensors are [1, T, width]; those of heads, between
// rope() and attention(), are [1, heads, T, head_dim]. Used from the engine's thread.
class Ops {
 public:
  using Tensor = mx::array;
  struct Norm {
    mx::array weight = mx::array(0.0F);
  };
  using Linear = Matrix;
  using Linears = std::vector<Matrix>;
  using Embedding = Matrix;

  Ops(const ModelConfig& config, mx::Device device);

  // Takes the row, whose parts live until the next begin().
  void begin(const RowInputs& row);

  Tensor embed(const Embedding& embedding);
  Tensor rms_norm(const Tensor& x, const Norm& norm, float eps) const;
  std::tuple<Tensor, Tensor, Tensor> linears3(const Tensor& x, const Linears& weights) const;
  Tensor rope(const Tensor& x, std::int32_t heads) const;
  Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionCall& call);
  Tensor add_linear(const Tensor& x, const Tensor& input, const Linear& weights) const;
  Tensor swiglu(const Tensor& x, const Linears& gate_up) const;
  Tensor sampled(const Tensor& x) const;
  Tensor linear(const Tensor& x, const Linear& weights) const;

  mx::Device device() const { return device_; }

 private:
  Tensor heads_of(const Tensor& x, std::int32_t heads) const;  // [1, heads, T, head_dim]

  mx::Device device_;
  std::int32_t kv_heads_;
  std::int32_t head_dim_;
  Rope rope_;
  RowInputs row_;
  std::int32_t position_ = 0;  // of the row's first token
  AttentionMask mask_;
};

static_assert(ModelOps<Ops>);

}  // namespace linnet::mlx_backend
