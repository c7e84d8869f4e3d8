#include "weights/testing/tiny_folder.h"

#include <array>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "weights/half.h"
#include "weights/testing/safetensors_writer.h"

namespace linnet::testing {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kBytes = 256;

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof value);
}

void append_float(std::vector<std::byte>& bytes, DType type, float value) {
  if (type == DType::kF32) return append(bytes, value);
  if (type == DType::kF16) return append(bytes, float_to_half(value));
  append(bytes, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U));
}

// Writes the tensors of one model, going round the shards.
class TensorWriter {
 public:
  explicit TensorWriter(const TinyFolder& options)
      : options_(options), shards_(static_cast<std::size_t>(options.shards)), seed_(options.shape.seed << 20U) {}

  void matrix(const std::string& module, std::int64_t rows, std::int64_t cols, bool bias = false) {
    const bool outer = module == "lm_head" || module == "model.embed_tokens";
    const float deviation = 1.0F / std::sqrt(static_cast<float>(cols));
    if (options_.bits != 0 && (!outer || options_.quantize_embedding)) {
      affine(module, rows, cols, deviation);
    } else {
      plain(module + ".weight", outer ? options_.shape.embedding_dtype : options_.shape.layer_dtype, {rows, cols}, deviation);
    }
    if (bias) plain(module + ".bias", options_.shape.layer_dtype, {rows}, 0.1F);
  }

  void norm(const std::string& module, std::int64_t size) {
    Rng rng(++seed_);
    std::vector<std::byte> data;
    for (std::int64_t i = 0; i < size; ++i) {
      append_float(data, options_.shape.layer_dtype, 0.7F + 0.6F * static_cast<float>(rng.below(1U << 20U)) * 0x1p-20F);
    }
    add(module + ".weight", std::string(dtype_name(options_.shape.layer_dtype)), {size}, data);
  }

  void write(const TempFolder& folder) const {
    if (shards_.size() == 1) return folder.write("model.safetensors", shards_[0].bytes());
    for (std::size_t i = 0; i < shards_.size(); ++i) folder.write(shard_name(i), shards_[i].bytes());
    folder.write("model.safetensors.index.json", Json{{"metadata", Json::object()}, {"weight_map", map_}}.dump(2));
  }

 private:
  std::string shard_name(std::size_t i) const {
    const auto five = [](std::size_t n) { return std::string(5 - std::to_string(n).size(), '0') + std::to_string(n); };
    return "model-" + five(i + 1) + "-of-" + five(shards_.size()) + ".safetensors";
  }

  void add(const std::string& name, const std::string& dtype, const std::vector<std::int64_t>& shape,
           const std::vector<std::byte>& data) {
    const std::size_t shard = next_++ % shards_.size();
    shards_[shard].add(name, dtype, shape, data);
    map_[name] = shard_name(shard);
  }

  void plain(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape, float deviation) {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    add(name, std::string(dtype_name(dtype)), shape, random_tensor(dtype, 1, elements, deviation, ++seed_));
  }

  // Random codes, and scales that centre the numbers at about 0 with about the wanted deviation. Uniform codes of n levels
  // deviate by n / sqrt(12).
  void affine(const std::string& module, std::int64_t rows, std::int64_t cols, float deviation) {
    CHECK(cols % options_.group == 0);
    Rng rng(++seed_);
    std::vector<std::byte> codes;
    for (std::int64_t i = 0; i < rows * cols * options_.bits / 32; ++i) append(codes, static_cast<std::uint32_t>(rng.bits()));
    const float levels = std::ldexp(1.0F, options_.bits);
    std::vector<std::byte> scales;
    std::vector<std::byte> biases;
    for (std::int64_t i = 0; i < rows * cols / options_.group; ++i) {
      const float scale = deviation * std::sqrt(12.0F) / levels * (0.5F + static_cast<float>(rng.below(1024)) / 1024);
      const float sign = rng.chance(0.5) ? -1.0F : 1.0F;
      append_float(scales, options_.scales, sign * scale);
      append_float(biases, options_.scales, -sign * scale * levels * (0.45F + static_cast<float>(rng.below(1024)) / 10240));
    }
    const std::string type(dtype_name(options_.scales));
    add(module + ".weight", "U32", {rows, cols * options_.bits / 32}, codes);
    add(module + ".scales", type, {rows, cols / options_.group}, scales);
    add(module + ".biases", type, {rows, cols / options_.group}, biases);
  }

  const TinyFolder& options_;
  std::vector<SafetensorsWriter> shards_;
  Json map_ = Json::object();
  std::size_t next_ = 0;
  std::uint64_t seed_;
};

void write_weights(const TempFolder& folder, const TinyFolder& options) {
  const TinyLlama& shape = options.shape;
  const std::int64_t q = std::int64_t{shape.heads} * shape.head_dim;
  const std::int64_t kv = std::int64_t{shape.kv_heads} * shape.head_dim;
  TensorWriter tensors(options);
  tensors.matrix("model.embed_tokens", shape.vocabulary, shape.hidden);
  for (std::int32_t layer = 0; layer < shape.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    tensors.norm(at + "input_layernorm", shape.hidden);
    tensors.matrix(at + "self_attn.q_proj", q, shape.hidden, options.attention_bias);
    tensors.matrix(at + "self_attn.k_proj", kv, shape.hidden, options.attention_bias);
    tensors.matrix(at + "self_attn.v_proj", kv, shape.hidden, options.attention_bias);
    tensors.matrix(at + "self_attn.o_proj", shape.hidden, q, options.attention_bias);
    tensors.norm(at + "post_attention_layernorm", shape.hidden);
    tensors.matrix(at + "mlp.gate_proj", shape.intermediate, shape.hidden, options.mlp_bias);
    tensors.matrix(at + "mlp.up_proj", shape.intermediate, shape.hidden, options.mlp_bias);
    tensors.matrix(at + "mlp.down_proj", shape.hidden, shape.intermediate, options.mlp_bias);
  }
  tensors.norm("model.norm", shape.hidden);
  if (!shape.tied) tensors.matrix("lm_head", shape.vocabulary, shape.hidden);
  tensors.write(folder);
}

Json config_json(const TinyFolder& options) {
  const TinyLlama& shape = options.shape;
  Json config = {{"architectures", {"LlamaForCausalLM"}},
                 {"model_type", "llama"},
                 {"hidden_size", shape.hidden},
                 {"intermediate_size", shape.intermediate},
                 {"num_hidden_layers", shape.layers},
                 {"num_attention_heads", shape.heads},
                 {"num_key_value_heads", shape.kv_heads},
                 {"head_dim", shape.head_dim},
                 {"vocab_size", shape.vocabulary},
                 {"max_position_embeddings", shape.context},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", static_cast<double>(shape.rope_theta)},
                 {"hidden_act", "silu"},
                 {"tie_word_embeddings", shape.tied},
                 {"attention_bias", options.attention_bias},
                 {"mlp_bias", options.mlp_bias},
                 {"eos_token_id", kBytes + 1}};
  if (options.bits != 0) {
    Json block = {{"group_size", options.group}, {"bits", options.bits}};
    if (!options.quantize_embedding) block.update({{"model.embed_tokens", false}, {"lm_head", false}});
    config["quantization"] = block;
  }
  config.update(Json::parse(options.config));
  return config;
}

Json tokenizer_json(const std::vector<std::string>& tokens) {
  Json vocabulary = Json::object();
  Json added = Json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (id < kBytes) {
      vocabulary.push_back({tokens[id], id});
      continue;
    }
    added.push_back({{"id", id},
                     {"content", tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocabulary},
            {"merges", Json::array()}}}};
}

}  // namespace

TempFolder tiny_llama_folder(const TinyFolder& options) {
  CHECK(options.shards >= 1);
  TempFolder folder;
  write_weights(folder, options);
  const std::vector<std::string> tokens = tiny_vocabulary(options.shape.vocabulary);
  folder.write("config.json", config_json(options).dump(2));
  folder.write("generation_config.json", Json{{"eos_token_id", {kBytes + 1, kBytes + 3}}}.dump(2));
  folder.write("tokenizer.json", tokenizer_json(tokens).dump(1));
  folder.write(
      "tokenizer_config.json",
      Json{{"bos_token", tokens[kBytes]}, {"eos_token", tokens[kBytes + 1]}, {"chat_template", kTinyChatTemplate}}.dump(2));
  return folder;
}

}  // namespace linnet::testing
