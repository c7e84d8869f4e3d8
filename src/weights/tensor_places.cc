#include "weights/tensor_places.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "weights/quote.h"

namespace linnet {
namespace {

struct Stem {
  std::string_view name;
  std::int64_t rows;
  std::int64_t cols;
  bool bias;
};

void add(std::vector<TensorPlace>& places, const std::string& prefix, const Stem& stem) {
  const std::string name = prefix + std::string(stem.name);
  places.push_back({name + ".weight", stem.rows, stem.cols});
  if (stem.bias) places.push_back({name + ".bias", 1, stem.rows, true});
}

}  // namespace

TensorPlaces::TensorPlaces(const ModelConfig& config)
    : no_place_("has no place in a model of architecture " + config.architecture + " with " + std::to_string(config.layers) +
                " layers") {
  const std::int64_t hidden = config.hidden;
  const std::int64_t wide = config.intermediate;
  const std::int64_t q = std::int64_t{config.heads} * config.head_dim;
  const std::int64_t kv = std::int64_t{config.kv_heads} * config.head_dim;
  const bool attention_bias = config.attention_bias;
  const bool mlp_bias = config.mlp_bias;
  add(places_, "model.", {"embed_tokens", config.vocabulary, hidden, false});
  add(places_, "model.", {"norm", 1, hidden, false});
  if (!config.tied_embeddings) add(places_, "", {"lm_head", config.vocabulary, hidden, false});
  for (std::int32_t layer = 0; layer < config.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    for (const Stem& stem :
         {Stem{"input_layernorm", 1, hidden, false}, Stem{"post_attention_layernorm", 1, hidden, false},
          Stem{"self_attn.q_proj", q, hidden, attention_bias}, Stem{"self_attn.k_proj", kv, hidden, attention_bias},
          Stem{"self_attn.v_proj", kv, hidden, attention_bias}, Stem{"self_attn.o_proj", hidden, q, attention_bias},
          Stem{"mlp.gate_proj", wide, hidden, mlp_bias}, Stem{"mlp.up_proj", wide, hidden, mlp_bias},
          Stem{"mlp.down_proj", hidden, wide, mlp_bias}}) {
      add(places_, at, stem);
    }
  }
  std::sort(places_.begin(), places_.end(), [](const TensorPlace& a, const TensorPlace& b) { return a.name < b.name; });
}

const TensorPlace* TensorPlaces::find(std::string_view name) const {
  const auto at = std::lower_bound(places_.begin(), places_.end(), name,
                                   [](const TensorPlace& place, std::string_view wanted) { return place.name < wanted; });
  return at == places_.end() || at->name != name ? nullptr : &*at;
}

std::string TensorPlaces::no_place() const { return no_place_; }

Status TensorPlaces::check(const ModelParts& parts) const {
  std::unordered_map<std::string_view, const Tensor*> tensors;
  for (const NamedTensor& tensor : parts.tensors) tensors.emplace(tensor.name, &tensor.tensor);
  for (const TensorPlace& place : places_) {
    const auto found = tensors.find(place.name);
    const std::string text = parts.path + ": tensor " + quote(place.name) + " ";
    if (found == tensors.end() && place.bias && !parts.gguf.empty()) continue;
    if (found == tensors.end()) return Error{ErrorCode::kCorrupt, text + "is missing", parts.path};
    const Tensor& tensor = *found->second;
    if (tensor.rows == place.rows && tensor.cols == place.cols) continue;
    return Error{ErrorCode::kCorrupt,
                 text + "is " + shape_text(tensor.rows, tensor.cols) + "; " + shape_text(place.rows, place.cols) + " is wanted",
                 parts.path};
  }
  return {};
}

}  // namespace linnet
