#include "backends/mlx/ops.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace linnet::mlx_backend {

Ops::Ops(const ModelConfig& config, mx::Device device)
    : device_(device), kv_heads_(config.kv_heads), head_dim_(config.head_dim), rope_(config, device) {}

void Ops::begin(const RowInputs& row) {
  CHECK(!row.tokens.empty() && row.caches != nullptr && !row.caches->empty());
  row_ = row;
  const LayerCache& first = *row.caches->front();
  position_ = static_cast<std::int32_t>(first.offset());
  mask_ = first.mask(static_cast<std::int32_t>(row.tokens.size()));
}

Ops::Tensor Ops::embed(const Embedding& embedding) {
  std::vector<std::int32_t> ids;
  ids.reserve(row_.tokens.size());
  for (const TokenId token : row_.tokens) ids.push_back(static_cast<std::int32_t>(token));
  const mx::array tokens(ids.begin(), {1, static_cast<mx::ShapeElem>(ids.size())}, mx::int32);
  const mx::array rows = mx::take(embedding.weight, tokens, 0, device_);
  if (!embedding.scales) return rows;
  return mx::dequantize(rows, mx::take(*embedding.scales, tokens, 0, device_), mx::take(*embedding.biases, tokens, 0, device_),
                        embedding.group, embedding.bits, "affine", std::nullopt, std::nullopt, device_);
}

Ops::Tensor Ops::rms_norm(const Tensor& x, const Norm& norm, float eps) const {
  return mx::fast::rms_norm(x, norm.weight, eps, device_);
}

std::tuple<Ops::Tensor, Ops::Tensor, Ops::Tensor> Ops::linears3(const Tensor& x, const Linears& weights) const {
  CHECK(weights.size() == 3);
  return {linear(x, weights[0]), linear(x, weights[1]), linear(x, weights[2])};
}

Ops::Tensor Ops::heads_of(const Tensor& x, std::int32_t heads) const {
  return mx::transpose(mx::reshape(x, {1, x.shape(1), heads, head_dim_}, device_), {0, 2, 1, 3}, device_);
}

Ops::Tensor Ops::rope(const Tensor& x, std::int32_t heads) const { return rope_.rotate(heads_of(x, heads), position_); }

Ops::Tensor Ops::attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionCall& call) {
  CHECK(call.window == 0 && call.soft_cap == 0);  // no model that this backend binds asks for them
  LayerCache& cache = *row_.caches->at(static_cast<std::size_t>(call.layer));
  const float scale = call.scale != 0 ? call.scale : static_cast<float>(std::pow(head_dim_, -0.5));
  CHECK(cache.offset() == position_);
  const KeysValues seen = cache.update(k, heads_of(v, kv_heads_));
  const mx::array attended = mx::fast::scaled_dot_product_attention(q, seen.keys, seen.values, scale, mask_.mode, mask_.allowed,
                                                                    std::nullopt, false, device_);
  return mx::reshape(mx::transpose(attended, {0, 2, 1, 3}, device_), {1, q.shape(2), q.shape(1) * head_dim_}, device_);
}

Ops::Tensor Ops::add_linear(const Tensor& x, const Tensor& input, const Linear& weights) const {
  return mx::add(x, linear(input, weights), device_);
}

Ops::Tensor Ops::swiglu(const Tensor& x, const Linears& gate_up) const {
  CHECK(gate_up.size() == 2);
  const mx::array gate = linear(x, gate_up[0]);
  const mx::array activated = mx::multiply(gate, mx::sigmoid(gate, device_), device_);
  return mx::multiply(activated, linear(x, gate_up[1]), device_);
}

// Without samples the logits are never evaluated; they are then those of the last token.
Ops::Tensor Ops::sampled(const Tensor& x) const {
  const std::int32_t tokens = x.shape(1);
  const std::int32_t first = tokens - std::max(row_.samples, 1);
  return first == 0 ? x : mx::slice(x, {0, first, 0}, {1, tokens, x.shape(2)}, device_);
}

Ops::Tensor Ops::linear(const Tensor& x, const Linear& weights) const {
  if (weights.scales) {
    mx::array product = mx::quantized_matmul(x, weights.weight, *weights.scales, weights.biases, true, weights.group,
                                             weights.bits, "affine", device_);
    return weights.bias ? mx::add(product, *weights.bias, device_) : product;
  }
  const mx::array columns = mx::transpose(weights.weight, device_);
  return weights.bias ? mx::addmm(*weights.bias, x, columns, 1.0F, 1.0F, device_) : mx::matmul(x, columns, device_);
}

}  // namespace linnet::mlx_backend
