// Llama: SmolLM2, Llama 2 and 3, Mistral's shape. A decoder of pre-normed attention and SwiGLU feed-forward blocks with rotary
// positions and grouped key/value heads (Touvron et al. 2023; Ainslie et al. 2023). Written once; `Ops` is a backend's
// vocabulary: on the CPU its tensors are views of step scratch and each word calls kernels, in MLX they are arrays and each word
// adds to a graph.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "linnet/status.h"
#include "model/config.h"
#include "model/ops.h"

namespace linnet {

// T: tokens of this step, all rows one after another. S: those whose logits are wanted.
template <ModelOps Ops>
class Llama {
 public:
  using Tensor = typename Ops::Tensor;
  using Norm = typename Ops::Norm;            // a vector of weights
  using Linear = typename Ops::Linear;        // one matrix, [out, in]
  using Linears = typename Ops::Linears;      // several matrices that read the same input
  using Embedding = typename Ops::Embedding;  // [vocabulary, hidden]

  // Takes the weights it needs from `weights`, by their Hugging Face names. Errors name the tensor that is missing or misshapen.
  template <class Weights>
  static Result<Llama> bind(const ModelConfig& config, Weights& weights) {
    const std::int64_t hidden = config.hidden;
    const std::int64_t q = std::int64_t{config.heads} * config.head_dim;
    const std::int64_t kv = std::int64_t{config.kv_heads} * config.head_dim;
    Llama model(config);
    LINNET_ASSIGN(model.embedding_, weights.embedding("model.embed_tokens.weight", config.vocabulary, hidden));
    for (std::int32_t i = 0; i < config.layers; ++i) {
      const std::string at = "model.layers." + std::to_string(i) + ".";
      Layer layer;
      LINNET_ASSIGN(layer.attention_norm, weights.norm(at + "input_layernorm.weight", hidden));
      LINNET_ASSIGN(
          layer.qkv,
          weights.linears({{at + "self_attn.q_proj", q}, {at + "self_attn.k_proj", kv}, {at + "self_attn.v_proj", kv}}, hidden));
      LINNET_ASSIGN(layer.output, weights.linear(at + "self_attn.o_proj", hidden, q));
      LINNET_ASSIGN(layer.feed_forward_norm, weights.norm(at + "post_attention_layernorm.weight", hidden));
      LINNET_ASSIGN(
          layer.gate_up,
          weights.linears({{at + "mlp.gate_proj", config.intermediate}, {at + "mlp.up_proj", config.intermediate}}, hidden));
      LINNET_ASSIGN(layer.down, weights.linear(at + "mlp.down_proj", hidden, config.intermediate));
      model.layers_.push_back(std::move(layer));
    }
    LINNET_ASSIGN(model.norm_, weights.norm("model.norm.weight", hidden));
    LINNET_ASSIGN(model.head_, config.tied_embeddings ? weights.tied_head(model.embedding_)
                                                      : weights.head("lm_head", config.vocabulary, hidden));
    return model;
  }

  // Logits [S, vocabulary] of the step that `ops` holds; its keys and values are written to the KV cache.
  Tensor forward(Ops& ops) const {
    const float eps = config_.rms_norm_eps;
    Tensor x = ops.embed(embedding_);  // [T, hidden]
    for (std::int32_t i = 0; i < config_.layers; ++i) {
      const Layer& layer = layers_[static_cast<std::size_t>(i)];
      Tensor h = ops.rms_norm(x, layer.attention_norm, eps);  // [T, hidden]
      auto [q, k, v] = ops.linears3(h, layer.qkv);            // [T, heads * dim], [T, kv_heads * dim] twice
      Tensor a = ops.attention(ops.rope(q, config_.heads), ops.rope(k, config_.kv_heads), v, {.layer = i});  // [T, heads * dim]
      x = ops.add_linear(x, a, layer.output);                                                                // [T, hidden]
      h = ops.rms_norm(x, layer.feed_forward_norm, eps);                                                     // [T, hidden]
      x = ops.add_linear(x, ops.swiglu(h, layer.gate_up), layer.down);                                       // [T, hidden]
    }
    x = ops.sampled(x);                                     // [S, hidden]
    return ops.linear(ops.rms_norm(x, norm_, eps), head_);  // [S, vocabulary]
  }

 private:
  struct Layer {
    Norm attention_norm, feed_forward_norm;
    Linears qkv, gate_up;
    Linear output, down;
  };

  explicit Llama(ModelConfig config) : config_(std::move(config)) {}

  ModelConfig config_;
  Embedding embedding_{};
  std::vector<Layer> layers_;
  Norm norm_{};
  Linear head_{};
};

}  // namespace linnet
