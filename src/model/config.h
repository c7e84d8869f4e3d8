// The hyper-parameters of a model, as the model files in this folder need them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace linnet {

struct RopeConfig {
  float theta = 10000.0F;
  bool interleaved = false;               // pairs are (2i, 2i + 1) instead of (i, i + head_dim / 2)
  std::vector<float> frequency_divisors;  // [head_dim / 2]; empty: all 1 (Llama 3 files carry them)

  bool operator==(const RopeConfig&) const = default;
};

// Checked when it is made (weights/): positive, bounded, heads divisible by kv_heads.
struct ModelConfig {
  std::string architecture;  // "llama"
  std::int32_t layers = 0;
  std::int32_t hidden = 0;        // width of the residual stream
  std::int32_t intermediate = 0;  // width of the feed-forward
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t vocabulary = 0;
  std::int32_t context_max = 0;  // tokens that the model was made for
  float rms_norm_eps = 1e-5F;
  bool tied_embeddings = false;  // the head is the embedding
  RopeConfig rope;

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace linnet
