// Names of tensors: Hugging Face's and GGUF's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace linnet {

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". Empty for a name that has no counterpart.
std::optional<std::string> gguf_tensor_name(std::string_view hugging_face_name);

// What a GGUF name stands for.
struct GgufTensorRole {
  std::string hugging_face_name;
  std::optional<std::int32_t> layer;  // empty: outside of the layers
  bool bias = false;                  // else a weight

  bool operator==(const GgufTensorRole&) const = default;
};
// Empty for a name that has no counterpart.
std::optional<GgufTensorRole> gguf_tensor_role(std::string_view gguf_name);

}  // namespace linnet
