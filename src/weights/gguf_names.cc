#include "weights/gguf_names.h"

#include <charconv>
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

struct Translation {
  std::string name;
  std::optional<std::int32_t> layer;
  bool bias = false;
};

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

std::optional<Translation> translate(std::string_view name, const Direction& direction) {
  const bool bias = name.ends_with(kBias);
  if (!bias && !name.ends_with(kWeight)) return std::nullopt;
  const std::string_view suffix = bias ? kBias : kWeight;
  std::string_view stem = name.substr(0, name.size() - suffix.size());
  if (const auto to = counterpart(kOutside, stem, direction)) {
    return Translation{.name = std::string(*to) + std::string(suffix), .layer = std::nullopt, .bias = bias};
  }
  const std::string_view prefix = kLayerPrefix.*direction.from;
  if (!stem.starts_with(prefix)) return std::nullopt;
  stem.remove_prefix(prefix.size());
  const std::optional<std::int32_t> layer = take_layer(stem);
  if (!layer) return std::nullopt;
  const auto to = counterpart(kInLayer, stem, direction);
  if (!to) return std::nullopt;
  std::string translated(kLayerPrefix.*direction.to);
  translated += std::to_string(*layer) + "." + std::string(*to) + std::string(suffix);
  return Translation{.name = std::move(translated), .layer = layer, .bias = bias};
}

}  // namespace

std::optional<std::string> gguf_tensor_name(std::string_view hugging_face_name) {
  std::optional<Translation> translation = translate(hugging_face_name, kToGguf);
  if (!translation) return std::nullopt;
  return std::move(translation->name);
}

std::optional<GgufTensorRole> gguf_tensor_role(std::string_view gguf_name) {
  std::optional<Translation> translation = translate(gguf_name, kFromGguf);
  if (!translation) return std::nullopt;
  return GgufTensorRole{std::move(translation->name), translation->layer, translation->bias};
}

}  // namespace linnet
