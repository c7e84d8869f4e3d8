// Names of tensors: Hugging Face's and GGUF's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace linnet {

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". Empty for a name that has no counterpart.
std::optional<std::string> gguf_tensor_name(std::string_view hugging_face_name);

// "blk.3.attn_q.weight" -> "model.layers.3.self_attn.q_proj.weight". Empty for a name that has no counterpart.
std::optional<std::string> hugging_face_tensor_name(std::string_view gguf_name);
// Whether a tensor of this name is part of the configuration, or follows from it, and so none of the model's.
bool is_gguf_config_tensor(std::string_view gguf_name);

}  // namespace linnet
