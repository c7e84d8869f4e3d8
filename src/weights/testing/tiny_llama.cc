#include "weights/testing/tiny_llama.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/random.h"
#include "weights/half.h"

namespace linnet::testing {
namespace {

constexpr std::int32_t kBytes = 256;
constexpr std::array<const char*, 4> kSpecial = {"<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>"};
constexpr std::int32_t kNormalToken = 1;
constexpr std::int32_t kControlToken = 3;

// Uniform between -limit and limit.
float uniform(Rng& rng, float limit) { return limit * (static_cast<float>(rng.below(1U << 24U)) * 0x1p-23F - 1.0F); }

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), data, data + sizeof value);
}

// A block of 32: random codes, and scales that centre the numbers at about 0 with about the wanted deviation. Uniform codes of n
// levels deviate by n / sqrt(12).
void append_block(std::vector<std::byte>& bytes, DType dtype, float deviation, Rng& rng) {
  const bool five = dtype == DType::kQ5_0 || dtype == DType::kQ5_1;
  const bool minimum = dtype == DType::kQ4_1 || dtype == DType::kQ5_1;
  const float levels = dtype == DType::kQ8_0 ? 256.0F : five ? 32.0F : 16.0F;
  const float scale = deviation * std::sqrt(12.0F) / levels * (1.0F + uniform(rng, 0.5F));
  append(bytes, float_to_half(rng.chance(0.5) && !minimum ? -scale : scale));
  if (minimum) append(bytes, float_to_half(-scale * levels / 2 * (1.0F + uniform(rng, 0.1F))));
  const std::int32_t code_bytes = dtype_info(dtype).block_bytes - (minimum ? 4 : 2);
  for (std::int32_t i = 0; i < code_bytes; ++i) append(bytes, static_cast<std::uint8_t>(rng.below(256)));
}

// A block of 256 of a K-quant: all bytes random but for the scales of scales, which keep the numbers near 0 and near the
// deviation.
void append_k_block(std::vector<std::byte>& bytes, DType dtype, float deviation, Rng& rng) {
  const std::size_t begin = bytes.size();
  for (std::int32_t i = 0; i < dtype_info(dtype).block_bytes; ++i) append(bytes, static_cast<std::uint8_t>(rng.below(256)));
  const auto put_half = [&](std::size_t at, float value) {
    const std::uint16_t half = float_to_half(value);
    std::memcpy(bytes.data() + begin + at, &half, sizeof half);
  };
  // Uniform 6-bit scales have a root mean square of 37, 8-bit ones of 74.
  const float levels = dtype == DType::kQ4_K ? 16.0F : dtype == DType::kQ5_K ? 32.0F : 64.0F;
  const float scale = deviation * std::sqrt(12.0F) / levels / (dtype == DType::kQ6_K ? 74.0F : 37.0F);
  if (dtype == DType::kQ6_K) return put_half(208, scale);
  put_half(0, scale);
  put_half(2, scale * levels / 2);
}

// UTF-8 of a code point below 0x800.
std::string utf8(std::uint32_t code) {
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0U | (code >> 6U)), static_cast<char>(0x80U | (code & 0x3FU))};
}

// The printable character that stands for a byte in byte-level vocabularies: itself if it is printable Latin-1, else U+0100 and
// up.
std::vector<std::string> byte_characters() {
  std::vector<std::string> characters;
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < kBytes; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    characters.push_back(utf8(printable ? byte : next++));
  }
  return characters;
}

void add_vocabulary(GgufWriter& writer, const TinyLlama& options) {
  std::vector<std::string> tokens = tiny_vocabulary(options.vocabulary);
  std::vector<std::int32_t> types(kBytes, kNormalToken);
  types.resize(tokens.size(), kControlToken);
  std::vector<std::string> merges;
  if (options.merges) {
    merges.emplace_back("t h");
    tokens.back() = "th";
    types.back() = kNormalToken;
  }
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", "gpt-2");
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  writer.add_numbers("tokenizer.ggml.token_type", GgufType::kInt32, types);
  writer.add_strings("tokenizer.ggml.merges", merges);
  writer.add_u32("tokenizer.ggml.bos_token_id", kBytes);
  writer.add_u32("tokenizer.ggml.eos_token_id", kBytes + 1);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
  writer.add_string("tokenizer.chat_template", kTinyChatTemplate);
}

void add_config(GgufWriter& writer, const TinyLlama& options) {
  const auto u32 = [&](const char* key, std::int32_t value) { writer.add_u32(key, static_cast<std::uint32_t>(value)); };
  writer.add_string("general.architecture", "llama");
  writer.add_string("general.name", "tiny llama");
  u32("llama.block_count", options.layers);
  u32("llama.embedding_length", options.hidden);
  u32("llama.feed_forward_length", options.intermediate);
  u32("llama.context_length", options.context);
  u32("llama.attention.head_count", options.heads);
  u32("llama.attention.head_count_kv", options.kv_heads);
  u32("llama.attention.key_length", options.head_dim);
  u32("llama.attention.value_length", options.head_dim);
  u32("llama.rope.dimension_count", options.head_dim);
  writer.add_f32("llama.rope.freq_base", options.rope_theta);
  writer.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
}

class TensorWriter {
 public:
  TensorWriter(GgufWriter& writer, std::uint64_t seed) : writer_(writer), seed_(seed) {}

  // A deviation of cols^-1/2 keeps the residual stream at about 1.
  void matrix(const std::string& name, DType dtype, std::int64_t rows, std::int64_t cols) {
    const std::array<std::int64_t, 2> dims = {cols, rows};
    const float deviation = 1.0F / std::sqrt(static_cast<float>(cols));
    writer_.add_tensor(name, dims, dtype, random_tensor(dtype, rows, cols, deviation, ++seed_));
  }
  void norm(const std::string& name, std::int64_t size) {
    Rng rng(++seed_);
    std::vector<float> values(static_cast<std::size_t>(size));
    for (float& value : values) value = 1.0F + uniform(rng, 0.3F);
    vector(name, values);
  }
  void bias(const std::string& name, std::int64_t size) {
    Rng rng(++seed_);
    std::vector<float> values(static_cast<std::size_t>(size));
    for (float& value : values) value = uniform(rng, 0.5F);
    vector(name, values);
  }
  void vector(const std::string& name, const std::vector<float>& values) {
    const std::array<std::int64_t, 1> dims = {static_cast<std::int64_t>(values.size())};
    writer_.add_tensor(name, dims, DType::kF32, std::as_bytes(std::span(values)));
  }

 private:
  GgufWriter& writer_;
  std::uint64_t seed_;
};

void add_layer(TensorWriter& tensors, const TinyLlama& options, std::int32_t layer) {
  const std::string at = "blk." + std::to_string(layer) + ".";
  const std::int64_t q = std::int64_t{options.heads} * options.head_dim;
  const std::int64_t kv = std::int64_t{options.kv_heads} * options.head_dim;
  const DType dtype = options.layer_dtype;
  tensors.norm(at + "attn_norm.weight", options.hidden);
  tensors.matrix(at + "attn_q.weight", dtype, q, options.hidden);
  tensors.matrix(at + "attn_k.weight", dtype, kv, options.hidden);
  tensors.matrix(at + "attn_v.weight", dtype, kv, options.hidden);
  tensors.matrix(at + "attn_output.weight", dtype, options.hidden, q);
  tensors.norm(at + "ffn_norm.weight", options.hidden);
  tensors.matrix(at + "ffn_gate.weight", dtype, options.intermediate, options.hidden);
  tensors.matrix(at + "ffn_up.weight", dtype, options.intermediate, options.hidden);
  tensors.matrix(at + "ffn_down.weight", dtype, options.hidden, options.intermediate);
  if (!options.biases) return;
  tensors.bias(at + "attn_q.bias", q);
  tensors.bias(at + "attn_k.bias", kv);
  tensors.bias(at + "attn_v.bias", kv);
  tensors.bias(at + "ffn_gate.bias", options.intermediate);
  tensors.bias(at + "ffn_up.bias", options.intermediate);
  tensors.bias(at + "ffn_down.bias", options.hidden);
}

}  // namespace

std::vector<std::string> tiny_vocabulary(std::int32_t size) {
  CHECK(size >= kBytes + static_cast<std::int32_t>(kSpecial.size()));
  std::vector<std::string> tokens = byte_characters();
  for (const char* special : kSpecial) tokens.emplace_back(special);
  while (tokens.size() < static_cast<std::size_t>(size)) tokens.push_back("<|unused_" + std::to_string(tokens.size()) + "|>");
  return tokens;
}

std::vector<std::byte> random_tensor(DType dtype, std::int64_t rows, std::int64_t cols, float deviation, std::uint64_t seed) {
  const std::optional<std::size_t> size = tensor_bytes(dtype, rows, cols);
  CHECK(size.has_value());
  Rng rng(seed);
  std::vector<std::byte> bytes;
  bytes.reserve(*size);
  const float limit = deviation * std::sqrt(3.0F);
  while (bytes.size() < *size) {
    switch (dtype) {
      case DType::kF32:
        append(bytes, uniform(rng, limit));
        break;
      case DType::kF16:
        append(bytes, float_to_half(uniform(rng, limit)));
        break;
      case DType::kBF16:
        append(bytes, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(uniform(rng, limit)) >> 16U));
        break;
      default:
        if (dtype_info(dtype).block_elements == 32) {
          append_block(bytes, dtype, deviation, rng);
        } else {
          append_k_block(bytes, dtype, deviation, rng);
        }
    }
  }
  return bytes;
}

GgufWriter tiny_llama_writer(const TinyLlama& options) {
  GgufWriter writer;
  add_config(writer, options);
  add_vocabulary(writer, options);
  TensorWriter tensors(writer, options.seed << 20U);
  tensors.matrix("token_embd.weight", options.embedding_dtype, options.vocabulary, options.hidden);
  for (std::int32_t layer = 0; layer < options.layers; ++layer) add_layer(tensors, options, layer);
  tensors.norm("output_norm.weight", options.hidden);
  if (!options.tied) tensors.matrix("output.weight", options.embedding_dtype, options.vocabulary, options.hidden);
  if (options.rope_divisors) {
    std::vector<float> divisors(static_cast<std::size_t>(options.head_dim / 2), 1.0F);
    for (std::size_t i = divisors.size() / 2; i < divisors.size(); ++i) divisors[i] = 8.0F;
    tensors.vector("rope_freqs.weight", divisors);
  }
  return writer;
}

std::vector<std::byte> tiny_llama_gguf(const TinyLlama& options) { return tiny_llama_writer(options).bytes(); }

TempFile tiny_llama_file(const TinyLlama& options) { return TempFile(tiny_llama_gguf(options)); }

}  // namespace linnet::testing
