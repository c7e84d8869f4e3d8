#include "weights/gguf_names.h"

#include <charconv>
#include <cstdint>
#include <span>

namespace linnet {
namespace {

struct Pair {
  std::string_view hugging_face;
  std::string_view gguf;
};

constexpr Pair kOutside[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
};

constexpr Pair kInLayer[] = {
    {"input_layernorm", "attn_norm"}, {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"},
};

constexpr Pair kLayerPrefix = {"model.layers.", "blk."};

constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kBias = ".bias";

// One side of the pairs and the other.
struct Direction {
  std::string_view Pair::*from;
  std::string_view Pair::*to;
};
constexpr Direction kToGguf = {&Pair::hugging_face, &Pair::gguf};
constexpr Direction kFromGguf = {&Pair::gguf, &Pair::hugging_face};

std::optional<std::string_view> counterpart(std::span<const Pair> pairs, std::string_view stem, const Direction& direction) {
  for (const Pair& pair : pairs) {
    if (pair.*direction.from == stem) return pair.*direction.to;
  }
  return std::nullopt;
}

// Takes "123." off the front of `text`; only the one way that a number is written counts, so that names stay unique.
std::optional<std::int32_t> take_layer(std::string_view& text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot == 0 || (dot > 1 && text[0] == '0') || text[0] == '-') return std::nullopt;
  std::int32_t layer = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + dot, layer);
  if (failure != std::errc() || end != text.data() + dot) return std::nullopt;
  text.remove_prefix(dot + 1);
  return layer;
}

std::optional<std::string> translate(std::string_view name, const Direction& direction) {
  const bool bias = name.ends_with(kBias);
  if (!bias && !name.ends_with(kWeight)) return std::nullopt;
  const std::string suffix(bias ? kBias : kWeight);
  std::string_view stem = name.substr(0, name.size() - suffix.size());
  if (const auto to = counterpart(kOutside, stem, direction)) return std::string(*to) + suffix;
  const std::string_view prefix = kLayerPrefix.*direction.from;
  if (!stem.starts_with(prefix)) return std::nullopt;
  stem.remove_prefix(prefix.size());
  const std::optional<std::int32_t> layer = take_layer(stem);
  if (!layer) return std::nullopt;
  const auto to = counterpart(kInLayer, stem, direction);
  if (!to) return std::nullopt;
  return std::string(kLayerPrefix.*direction.to) + std::to_string(*layer) + "." + std::string(*to) + suffix;
}

// Tables of frequencies, whole or by layer (the latter in old files only).
constexpr std::string_view kConfigTensors[] = {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"};

}  // namespace

std::optional<std::string> gguf_tensor_name(std::string_view hugging_face_name) { return translate(hugging_face_name, kToGguf); }

std::optional<std::string> hugging_face_tensor_name(std::string_view gguf_name) { return translate(gguf_name, kFromGguf); }

bool is_gguf_config_tensor(std::string_view gguf_name) {
  for (const std::string_view name : kConfigTensors) {
    if (name == gguf_name) return true;
  }
  return gguf_name.starts_with("blk.") && gguf_name.ends_with(".attn_rot_embd.weight");
}

}  // namespace linnet
