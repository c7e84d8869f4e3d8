#include "reference_llama.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "weights/dequantize.h"

namespace linnet {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // rows

Matrix load(const ModelFile& file, const std::string& name) {
  const Result<Tensor> tensor = file.find(name);
  CHECK_MSG(tensor.ok(), name);
  Matrix matrix;
  std::vector<float> row(static_cast<std::size_t>(tensor->cols));
  for (std::int64_t r = 0; r < tensor->rows; ++r) {
    dequantize_row(tensor->dtype, tensor->row(r), tensor->cols, row.data());
    matrix.emplace_back(row.begin(), row.end());
  }
  return matrix;
}

struct Linear {
  Matrix weights;
  Vector bias;  // empty: none
};

Linear load_linear(const ModelFile& file, const std::string& name) {
  Linear linear{load(file, name + ".weight"), {}};
  if (file.find(name + ".bias").ok()) linear.bias = load(file, name + ".bias")[0];
  return linear;
}

Vector times(const Linear& linear, const Vector& x) {
  Vector y = linear.bias.empty() ? Vector(linear.weights.size(), 0) : linear.bias;
  for (std::size_t n = 0; n < y.size(); ++n) {
    for (std::size_t i = 0; i < x.size(); ++i) y[n] += linear.weights[n][i] * x[i];
  }
  return y;
}

Vector rms_norm(const Vector& x, const Vector& weight, double eps) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + eps);
  Vector y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
  return y;
}

void rope(Vector& x, const ModelConfig& config, std::int64_t position) {
  const auto dim = static_cast<std::size_t>(config.head_dim);
  for (std::size_t head = 0; head < x.size() / dim; ++head) {
    for (std::size_t i = 0; i < dim / 2; ++i) {
      const double divisor = config.rope.frequency_divisors.empty() ? 1 : static_cast<double>(config.rope.frequency_divisors[i]);
      const double angle = static_cast<double>(position) *
                           std::pow(config.rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim)) / divisor;
      double& a = x[head * dim + (config.rope.interleaved ? 2 * i : i)];
      double& b = x[head * dim + (config.rope.interleaved ? 2 * i + 1 : i + dim / 2)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

// One query position over keys and values [position][kv_heads * dim].
Vector attend(const Vector& q, const Matrix& keys, const Matrix& values, const ModelConfig& config) {
  const auto dim = static_cast<std::size_t>(config.head_dim);
  const auto group = static_cast<std::size_t>(config.heads / config.kv_heads);
  Vector out(q.size(), 0);
  for (std::size_t head = 0; head < static_cast<std::size_t>(config.heads); ++head) {
    const std::size_t kv = head / group * dim;
    Vector scores;
    for (const Vector& key : keys) {
      double dot = 0;
      for (std::size_t i = 0; i < dim; ++i) dot += q[head * dim + i] * key[kv + i];
      scores.push_back(dot / std::sqrt(static_cast<double>(dim)));
    }
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - most);
    for (std::size_t t = 0; t < keys.size(); ++t) {
      for (std::size_t i = 0; i < dim; ++i) out[head * dim + i] += scores[t] / sum * values[t][kv + i];
    }
  }
  return out;
}

void add(Vector& x, const Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

struct Layer {
  Matrix attention_norm;
  Linear q, k, v, o;
  Matrix feed_forward_norm;
  Linear gate, up, down;
  Matrix keys, values;  // of the positions so far
};

void run_layer(Layer& layer, const ModelConfig& config, std::int64_t position, Vector& x) {
  const auto eps = static_cast<double>(config.rms_norm_eps);
  Vector h = rms_norm(x, layer.attention_norm[0], eps);
  Vector q = times(layer.q, h);
  Vector k = times(layer.k, h);
  rope(q, config, position);
  rope(k, config, position);
  layer.keys.push_back(k);
  layer.values.push_back(times(layer.v, h));
  add(x, times(layer.o, attend(q, layer.keys, layer.values, config)));
  h = rms_norm(x, layer.feed_forward_norm[0], eps);
  const Vector gate = times(layer.gate, h);
  Vector product = times(layer.up, h);
  for (std::size_t i = 0; i < product.size(); ++i) product[i] *= gate[i] / (1 + std::exp(-gate[i]));
  add(x, times(layer.down, product));
}

}  // namespace

std::vector<std::vector<double>> reference_logits(const ModelFile& file, std::span<const TokenId> tokens) {
  const ModelConfig& config = file.config();
  std::vector<Layer> layers;
  for (std::int32_t i = 0; i < config.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    layers.push_back({load(file, at + "input_layernorm.weight"),
                      load_linear(file, at + "self_attn.q_proj"),
                      load_linear(file, at + "self_attn.k_proj"),
                      load_linear(file, at + "self_attn.v_proj"),
                      load_linear(file, at + "self_attn.o_proj"),
                      load(file, at + "post_attention_layernorm.weight"),
                      load_linear(file, at + "mlp.gate_proj"),
                      load_linear(file, at + "mlp.up_proj"),
                      load_linear(file, at + "mlp.down_proj"),
                      {},
                      {}});
  }
  const Matrix embedding = load(file, "model.embed_tokens.weight");
  const Matrix norm = load(file, "model.norm.weight");
  const Linear head = config.tied_embeddings ? Linear{embedding, {}} : load_linear(file, "lm_head");
  std::vector<std::vector<double>> logits;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    Vector x = embedding[index_of(tokens[t])];
    for (Layer& layer : layers) run_layer(layer, config, static_cast<std::int64_t>(t), x);
    logits.push_back(times(head, rms_norm(x, norm[0], static_cast<double>(config.rms_norm_eps))));
  }
  return logits;
}

}  // namespace linnet
