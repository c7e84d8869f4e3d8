#include "weights/gguf_config.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "weights/config_limits.h"
#include "weights/gguf_names.h"
#include "weights/gguf_rope.h"
#include "weights/quote.h"
#include "weights/rope_check.h"

namespace linnet {
namespace {

// Keys that change the arithmetic in ways that no model here follows, and the values that change nothing.
struct RefusedKey {
  std::string_view name;
  double harmless;
};
constexpr RefusedKey kRefusedKeys[] = {
    {"expert_count", 0},    {"attention.clamp_kqv", 0}, {"attention.max_alibi_bias", 0},
    {"attention.scale", 0}, {"embedding_scale", 1},     {"residual_scale", 1},
    {"logit_scale", 1},
};

// Reads keys below one architecture's prefix.
class ConfigReader {
 public:
  ConfigReader(std::span<const GgufFile> files, std::string_view architecture)
      : files_(files), file_(files[0]), prefix_(std::string(architecture) + ".") {
    config_.architecture = architecture;
  }

  Result<ModelConfig> read() {
    LINNET_RETURN_IF_ERROR(sizes());
    LINNET_RETURN_IF_ERROR(heads());
    LINNET_RETURN_IF_ERROR(refuse());
    LINNET_RETURN_IF_ERROR(embedding());
    LINNET_ASSIGN(config_.rope, read_gguf_rope(files_, prefix_, config_));
    biases();
    return std::move(config_);
  }

 private:
  const GgufValue* find(std::string_view name) const { return file_.find(prefix_ + std::string(name)); }
  Result<const GgufValue*> require(std::string_view name) const { return file_.require(prefix_ + std::string(name)); }

  static Result<std::int32_t> bounded(const GgufValue& value, std::int64_t number, std::int64_t max) {
    if (number >= 1 && number <= max) return static_cast<std::int32_t>(number);
    return value.error(ErrorCode::kCorrupt, "is " + std::to_string(number) + "; 1 to " + std::to_string(max) + " are allowed");
  }

  Result<std::int32_t> count(std::string_view name, std::int64_t max) const {
    LINNET_ASSIGN(const GgufValue* value, require(name));
    LINNET_ASSIGN(const std::int64_t number, value->as_int());
    return bounded(*value, number, max);
  }

  // A number for all layers, or an array with one for each, all equal. Needs config_.layers.
  Result<std::int32_t> layer_count(const GgufValue& value, std::int64_t max) const {
    if (!value.is_array()) {
      LINNET_ASSIGN(const std::int64_t number, value.as_int());
      return bounded(value, number, max);
    }
    LINNET_ASSIGN(const GgufInts numbers, value.as_ints());
    if (numbers.size() != static_cast<std::size_t>(config_.layers)) {
      return value.error(ErrorCode::kCorrupt,
                         "has " + std::to_string(numbers.size()) + " elements for " + std::to_string(config_.layers) + " layers");
    }
    for (std::size_t i = 1; i < numbers.size(); ++i) {
      if (numbers[i] != numbers[0]) {
        return value.error(ErrorCode::kUnsupported, "is " + std::to_string(numbers[0]) + " in layer 0 and " +
                                                        std::to_string(numbers[i]) + " in layer " + std::to_string(i) +
                                                        "; layers that differ are not supported");
      }
    }
    return bounded(value, numbers[0], max);
  }

  Status sizes() {
    LINNET_ASSIGN(config_.layers, count("block_count", ConfigLimits::kLayersMax));
    LINNET_ASSIGN(config_.hidden, count("embedding_length", ConfigLimits::kHiddenMax));
    LINNET_ASSIGN(config_.context_max, count("context_length", ConfigLimits::kContextMax));
    LINNET_ASSIGN(const GgufValue* intermediate, require("feed_forward_length"));
    LINNET_ASSIGN(config_.intermediate, layer_count(*intermediate, ConfigLimits::kIntermediateMax));
    LINNET_ASSIGN(const GgufValue* eps, require("attention.layer_norm_rms_epsilon"));
    LINNET_ASSIGN(const double number, eps->as_float());
    if (!(number > 0 && number <= 1)) {
      return eps->error(ErrorCode::kCorrupt, "is " + number_text(number) + "; it must be above 0 and at most 1");
    }
    config_.rms_norm_eps = static_cast<float>(number);
    return {};
  }

  Status heads() {
    LINNET_ASSIGN(const GgufValue* heads, require("attention.head_count"));
    LINNET_ASSIGN(config_.heads, layer_count(*heads, ConfigLimits::kHeadsMax));
    config_.kv_heads = config_.heads;
    if (const GgufValue* kv_heads = find("attention.head_count_kv")) {
      LINNET_ASSIGN(config_.kv_heads, layer_count(*kv_heads, ConfigLimits::kHeadsMax));
      if (config_.heads % config_.kv_heads != 0) {
        return kv_heads->error(ErrorCode::kCorrupt, "is " + std::to_string(config_.kv_heads) + ", no divisor of the " +
                                                        std::to_string(config_.heads) + " heads");
      }
    }
    return head_dim(*heads);
  }

  Status head_dim(const GgufValue& heads) {
    const GgufValue* source = find("attention.key_length");
    if (source != nullptr) {
      LINNET_ASSIGN(config_.head_dim, count("attention.key_length", ConfigLimits::kHeadDimMax));
    } else {
      source = &heads;
      if (config_.hidden % config_.heads != 0) {
        return heads.error(ErrorCode::kCorrupt, "is " + std::to_string(config_.heads) + ", no divisor of " + prefix_ +
                                                    "embedding_length = " + std::to_string(config_.hidden));
      }
      config_.head_dim = config_.hidden / config_.heads;
    }
    if (config_.head_dim > ConfigLimits::kHeadDimMax || config_.head_dim % 2 != 0) {
      return source->error(ErrorCode::kCorrupt, "makes heads of " + std::to_string(config_.head_dim) +
                                                    " elements; even sizes from 2 to " +
                                                    std::to_string(ConfigLimits::kHeadDimMax) + " are allowed");
    }
    LINNET_RETURN_IF_ERROR(must_be_head_dim("attention.value_length"));
    return must_be_head_dim("rope.dimension_count");
  }

  Status must_be_head_dim(std::string_view name) const {
    const GgufValue* value = find(name);
    if (value == nullptr) return {};
    LINNET_ASSIGN(const std::int64_t number, value->as_int());
    if (number == config_.head_dim) return {};
    return value->error(ErrorCode::kUnsupported, "is " + std::to_string(number) + "; only the size of a head (" +
                                                     std::to_string(config_.head_dim) + ") is supported");
  }

  Status refuse() const {
    for (const RefusedKey& refused : kRefusedKeys) {
      const GgufValue* value = find(refused.name);
      if (value == nullptr) continue;
      LINNET_ASSIGN(const double number, value->as_float());
      if (number == 0 || number == refused.harmless) continue;
      return value->error(ErrorCode::kUnsupported,
                          "is " + number_text(number) + ", which is not supported for architecture " + config_.architecture);
    }
    if (const GgufValue* causal = find("attention.causal")) {
      LINNET_ASSIGN(const bool yes, causal->as_bool());
      if (!yes) return causal->error(ErrorCode::kUnsupported, "is false; only causal attention is supported");
    }
    if (const GgufValue* window = find("attention.sliding_window")) {
      LINNET_ASSIGN(const std::int64_t tokens, window->as_int());
      if (tokens != 0 && tokens < config_.context_max) {
        return window->error(ErrorCode::kUnsupported,
                             "is " + std::to_string(tokens) +
                                 "; sliding windows shorter than the context are not supported for architecture " +
                                 config_.architecture);
      }
    }
    return {};
  }

  // The vocabulary is what the embedding has rows for; the tokenizer may know fewer tokens, not more.
  Status embedding() {
    const GgufTensor* tensor = find_tensor("token_embd.weight");
    if (tensor == nullptr) return file_.error(ErrorCode::kCorrupt, "tensor 'token_embd.weight' is missing");
    const std::string shape =
        "tensor 'token_embd.weight' is [" + std::to_string(tensor->dims[1]) + ", " + std::to_string(tensor->dims[0]) + "]";
    if (tensor->rank > 2 || tensor->dims[0] != config_.hidden) {
      return file_.error(ErrorCode::kCorrupt, shape + " of " + std::to_string(tensor->rank) + " dimensions; " + prefix_ +
                                                  "embedding_length is " + std::to_string(config_.hidden));
    }
    if (tensor->dims[1] > ConfigLimits::kVocabularyMax) {
      return file_.error(ErrorCode::kCorrupt,
                         shape + "; at most " + std::to_string(ConfigLimits::kVocabularyMax) + " tokens are allowed");
    }
    config_.vocabulary = static_cast<std::int32_t>(tensor->dims[1]);
    config_.tied_embeddings = find_tensor("output.weight") == nullptr;
    const GgufValue* tokens = file_.find("tokenizer.ggml.tokens");
    if (tokens != nullptr && tokens->size() > static_cast<std::size_t>(config_.vocabulary)) {
      return tokens->error(ErrorCode::kCorrupt, "has " + std::to_string(tokens->size()) + " tokens, and " + shape);
    }
    return {};
  }

  void biases() {
    for (const GgufFile& file : files_) {
      for (const GgufTensor& tensor : file.tensors()) {
        const std::string name = hugging_face_tensor_name(tensor.name).value_or("");
        if (!name.ends_with("_proj.bias")) continue;
        (name.find(".self_attn.") != std::string::npos ? config_.attention_bias : config_.mlp_bias) = true;
      }
    }
  }

  const GgufTensor* find_tensor(std::string_view name) const {
    for (const GgufFile& file : files_) {
      if (const GgufTensor* tensor = file.find_tensor(name)) return tensor;
    }
    return nullptr;
  }

  std::span<const GgufFile> files_;
  const GgufFile& file_;
  std::string prefix_;
  ModelConfig config_;
};

}  // namespace

Result<ModelConfig> read_gguf_config(std::span<const GgufFile> files) {
  CHECK(!files.empty());
  LINNET_ASSIGN(const GgufValue* value, files[0].require("general.architecture"));
  LINNET_ASSIGN(const std::string_view name, value->as_string());
  for (const ArchitectureName& known : kGgufArchitectures) {
    if (known.in_file == name) return ConfigReader(files, known.architecture).read();
  }
  return value->error(ErrorCode::kUnsupported, "is " + quote(name) + ", an architecture that is not supported; known are: " +
                                                   architecture_names(kGgufArchitectures));
}

}  // namespace linnet
