// The hyper-parameters of a model, as the model files in this folder need them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace linnet {

enum class RopeKind : std::uint8_t {
  kDefault,
  kLinear,    // positions divided by `factor`
  kLlama3,    // long wavelengths divided by `factor`, those between blended (Llama 3.1)
  kYarn,      // frequencies blended by how often they turn within the original context (Peng et al. 2023)
  kLongRope,  // one divisor a frequency: `short_factor` or `long_factor` (Ding et al. 2024; Phi 3)
};

// Rotary positions (Su et al. 2021) with what a file says about stretching them. Fields beyond the first five belong to the kinds
// that name them.
struct RopeConfig {
  RopeKind kind = RopeKind::kDefault;
  float theta = 10000.0F;
  std::int32_t dims = 0;                  // values of a head that turn, its first ones; 0: all
  bool interleaved = false;               // pairs are (2i, 2i + 1) instead of (i, i + dims / 2)
  std::vector<float> frequency_divisors;  // [dims / 2]; empty: all 1 (GGUF files of Llama 3 carry them)
  float factor = 1.0F;                    // linear, llama3, yarn, longrope
  std::int32_t original_context = 0;      // tokens; llama3, yarn, longrope
  float low_freq_factor = 1.0F;           // llama3
  float high_freq_factor = 4.0F;          // llama3
  float beta_fast = 32.0F;                // yarn
  float beta_slow = 1.0F;                 // yarn
  float mscale = 1.0F;                    // yarn
  float mscale_all_dim = 0.0F;            // yarn
  std::vector<float> short_factor;        // longrope, [dims / 2]
  std::vector<float> long_factor;         // longrope, [dims / 2]

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
  bool attention_bias = false;   // q, k, v and output projections have biases (in GGUF files perhaps not all of them)
  bool mlp_bias = false;         // gate, up and down projections have biases (likewise)
  RopeConfig rope;

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace linnet
