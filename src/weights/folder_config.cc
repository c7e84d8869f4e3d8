#include "weights/folder_config.h"

#include <optional>
#include <string>
#include <utility>

#include "weights/config_limits.h"
#include "weights/folder_rope.h"
#include "weights/quote.h"
#include "weights/rope_check.h"

namespace linnet {
namespace {

// Keys that change the arithmetic in ways that no model here follows, and the values that change nothing.
struct RefusedNumber {
  std::string_view key;
  double harmless;
};
constexpr RefusedNumber kRefusedNumbers[] = {
    {"num_local_experts", 0},       {"num_experts", 0},     {"n_routed_experts", 0},     {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0}, {"logit_scale", 1},     {"logits_scaling", 1},       {"embedding_multiplier", 1},
    {"residual_multiplier", 1},     {"attention_scale", 0}, {"attention_multiplier", 0}, {"query_pre_attn_scalar", 0},
};
constexpr std::string_view kRefusedFlags[] = {"quantize_activations", "use_qk_norm", "qk_layernorm", "clip_qkv"};

class ConfigReader {
 public:
  ConfigReader(const ConfigJson& json, std::string_view architecture) : json_(json) { config_.architecture = architecture; }

  Result<ModelConfig> read() {
    LINNET_RETURN_IF_ERROR(sizes());
    LINNET_RETURN_IF_ERROR(heads());
    LINNET_RETURN_IF_ERROR(flags());
    LINNET_RETURN_IF_ERROR(refuse());
    LINNET_RETURN_IF_ERROR(refuse_windows());
    LINNET_ASSIGN(config_.rope, read_folder_rope(json_, config_));
    return std::move(config_);
  }

 private:
  Result<std::int32_t> count(std::string_view key, std::int64_t max) const {
    LINNET_ASSIGN(const std::int64_t value, json_.require_int(key, 1, max));
    return static_cast<std::int32_t>(value);
  }

  Status sizes() {
    LINNET_ASSIGN(config_.layers, count("num_hidden_layers", ConfigLimits::kLayersMax));
    LINNET_ASSIGN(config_.hidden, count("hidden_size", ConfigLimits::kHiddenMax));
    LINNET_ASSIGN(config_.intermediate, count("intermediate_size", ConfigLimits::kIntermediateMax));
    LINNET_ASSIGN(config_.vocabulary, count("vocab_size", ConfigLimits::kVocabularyMax));
    LINNET_ASSIGN(config_.context_max, count("max_position_embeddings", ConfigLimits::kContextMax));
    LINNET_ASSIGN(const std::optional<double> eps, json_.number("rms_norm_eps"));
    if (!eps) return json_.error(ErrorCode::kCorrupt, "key 'rms_norm_eps' is missing");
    if (!(*eps > 0 && *eps <= 1)) {
      return json_.error(ErrorCode::kCorrupt,
                         "key 'rms_norm_eps' is " + number_text(*eps) + "; it must be above 0 and at most 1");
    }
    config_.rms_norm_eps = static_cast<float>(*eps);
    return {};
  }

  Status heads() {
    LINNET_ASSIGN(config_.heads, count("num_attention_heads", ConfigLimits::kHeadsMax));
    config_.kv_heads = config_.heads;
    if (json_.find("num_key_value_heads") != nullptr) {
      LINNET_ASSIGN(config_.kv_heads, count("num_key_value_heads", ConfigLimits::kHeadsMax));
    }
    if (config_.heads % config_.kv_heads != 0) {
      return json_.error(ErrorCode::kCorrupt, "key 'num_key_value_heads' is " + std::to_string(config_.kv_heads) +
                                                  ", no divisor of the " + std::to_string(config_.heads) + " heads");
    }
    std::string_view source = "head_dim";
    if (json_.find(source) != nullptr) {
      LINNET_ASSIGN(config_.head_dim, count(source, ConfigLimits::kHeadDimMax));
    } else {
      source = "num_attention_heads";
      if (config_.hidden % config_.heads != 0) {
        return json_.error(ErrorCode::kCorrupt, "key 'num_attention_heads' is " + std::to_string(config_.heads) +
                                                    ", no divisor of hidden_size = " + std::to_string(config_.hidden));
      }
      config_.head_dim = config_.hidden / config_.heads;
    }
    if (config_.head_dim <= ConfigLimits::kHeadDimMax && config_.head_dim % 2 == 0) return {};
    return json_.error(ErrorCode::kCorrupt, "key " + quote(source) + " makes heads of " + std::to_string(config_.head_dim) +
                                                " elements; even sizes from 2 to " + std::to_string(ConfigLimits::kHeadDimMax) +
                                                " are allowed");
  }

  Status flags() {
    LINNET_ASSIGN(const std::optional<bool> tied, json_.flag("tie_word_embeddings"));
    config_.tied_embeddings = tied.value_or(!json_.nested());  // as mlx-lm has it for this architecture
    LINNET_ASSIGN(const std::optional<bool> attention_bias, json_.flag("attention_bias"));
    config_.attention_bias = attention_bias.value_or(false);
    LINNET_ASSIGN(const std::optional<bool> mlp_bias, json_.flag("mlp_bias"));
    config_.mlp_bias = mlp_bias.value_or(false);
    return {};
  }

  Status refuse() const {
    for (const RefusedNumber& refused : kRefusedNumbers) {
      LINNET_ASSIGN(const std::optional<double> value, json_.number(refused.key));
      if (!value || *value == 0 || *value == refused.harmless) continue;
      return unsupported(refused.key, "it is not supported for this architecture");
    }
    for (const std::string_view key : kRefusedFlags) {
      const Json* value = json_.find(key);
      if (value != nullptr && *value != false) return unsupported(key, "it is not supported for this architecture");
    }
    if (json_.find("model_file") != nullptr) return unsupported("model_file", "programs inside model folders are not run");
    for (const char* key : {"hidden_act", "hidden_activation"}) {
      const Json* value = json_.find(key);
      if (value != nullptr && *value != "silu") return unsupported(key, "only silu is supported");
    }
    return {};
  }

  Status refuse_windows() const {
    if (const Json* types = json_.find("layer_types")) {
      if (!types->is_array()) return json_.value_error(ErrorCode::kCorrupt, "layer_types", *types, "a list is wanted");
      for (const Json& type : *types) {
        if (type != "full_attention") {
          return json_.value_error(ErrorCode::kUnsupported, "layer_types", type, "only full_attention is supported");
        }
      }
      return {};
    }
    LINNET_ASSIGN(const std::optional<bool> used, json_.flag("use_sliding_window"));
    LINNET_ASSIGN(const std::optional<double> window, json_.number("sliding_window"));
    if (!used.value_or(true) || !window || *window <= 0 || *window >= config_.context_max) return {};
    return unsupported("sliding_window", "windows shorter than the context are not supported");
  }

  Error unsupported(std::string_view key, std::string_view what) const {
    return json_.value_error(ErrorCode::kUnsupported, key, *json_.find(key), what);
  }

  const ConfigJson& json_;
  ModelConfig config_;
};

}  // namespace

Result<ModelConfig> read_folder_config(const ConfigJson& json) {
  LINNET_ASSIGN(const std::optional<std::string> name, json.string("model_type"));
  if (!name) return json.error(ErrorCode::kCorrupt, "key 'model_type' is missing");
  for (const ArchitectureName& known : kFolderArchitectures) {
    if (known.in_file == *name) return ConfigReader(json, known.architecture).read();
  }
  return json.error(ErrorCode::kUnsupported,
                    "key 'model_type' is " + quote(*name) +
                        ", an architecture that is not supported; known are: " + architecture_names(kFolderArchitectures));
}

}  // namespace linnet
