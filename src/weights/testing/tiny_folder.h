// Llama models of a few kilobytes with random weights, as folders of Hugging Face or MLX.
#pragma once

#include <cstdint>
#include <string>

#include "base/testing/temp_folder.h"
#include "weights/tensor.h"
#include "weights/testing/tiny_llama.h"

namespace linnet::testing {

// The defaults give a model in bfloat16 with TinyLlama's shape.
struct TinyFolder {
  // Its formats are plain numbers where nothing is quantized; norms and biases have layer_dtype too.
  TinyLlama shape{.layer_dtype = DType::kBF16, .embedding_dtype = DType::kBF16};
  std::int32_t bits = 0;           // mlx-lm's affine quantization: 2, 3, 4, 5, 6 or 8; 0: none
  std::int32_t group = 32;         // 32, 64 or 128; divides the columns of every matrix
  DType scales = DType::kBF16;     // F32, F16 or BF16
  bool quantize_embedding = true;  // and the head; else `false` stands in the configuration
  bool attention_bias = false;     // on q, k, v and output projections
  bool mlp_bias = false;           // on gate, up and down projections
  std::int32_t shards = 1;         // more: with an index
  std::string config = "{}";       // keys put over those of config.json: R"({"rope_scaling":{...}})"
};

// config.json, generation_config.json, safetensors, tokenizer.json and tokenizer_config.json (TinyLlama's vocabulary, ends and
// chat template). Equal options give equal bytes.
TempFolder tiny_llama_folder(const TinyFolder& options = {});

}  // namespace linnet::testing
