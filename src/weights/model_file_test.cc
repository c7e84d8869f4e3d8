#include "weights/model_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "weights/testing/gguf_writer.h"
#include "weights/testing/is_error.h"
#include "weights/testing/tiny_llama.h"

namespace linnet {
namespace {

using testing::GgufWriter;
using testing::is_error;
using testing::TempFile;
using testing::TinyLlama;

constexpr DType kDTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0,
                             DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0};

// The tensors of a llama with their shapes, as a model file asks for them.
void expect_complete(const ModelFile& model, const TinyLlama& options) {
  const std::int64_t q = std::int64_t{options.heads} * options.head_dim;
  const std::int64_t kv = std::int64_t{options.kv_heads} * options.head_dim;
  const auto has = [&](const std::string& name, std::int64_t rows, std::int64_t cols) {
    const Result<Tensor> tensor = model.require(name, rows, cols);
    ASSERT_TRUE(tensor.ok()) << tensor.error().message;
    EXPECT_EQ(tensor->data.size(), tensor_bytes(tensor->dtype, rows, cols)) << name;
  };
  has("model.embed_tokens.weight", options.vocabulary, options.hidden);
  for (std::int32_t layer = 0; layer < options.layers; ++layer) {
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    has(at + "input_layernorm.weight", 1, options.hidden);
    has(at + "self_attn.q_proj.weight", q, options.hidden);
    has(at + "self_attn.k_proj.weight", kv, options.hidden);
    has(at + "self_attn.v_proj.weight", kv, options.hidden);
    has(at + "self_attn.o_proj.weight", options.hidden, q);
    has(at + "post_attention_layernorm.weight", 1, options.hidden);
    has(at + "mlp.gate_proj.weight", options.intermediate, options.hidden);
    has(at + "mlp.up_proj.weight", options.intermediate, options.hidden);
    has(at + "mlp.down_proj.weight", options.hidden, options.intermediate);
  }
  has("model.norm.weight", 1, options.hidden);
  EXPECT_EQ(model.find("lm_head.weight").ok(), !options.tied);
}

TEST(ModelFile, OpensTinyLlamasOfEveryFormat) {
  for (const DType dtype : kDTypes) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(dtype_name(dtype));
      TinyLlama options;
      options.layer_dtype = dtype;
      options.tied = tied;
      options.rope_divisors = tied;
      const TempFile file = testing::tiny_llama_file(options);
      const Result<std::unique_ptr<ModelFile>> model = open_model_file(file.path());
      ASSERT_TRUE(model.ok()) << model.error().message;
      const ModelConfig& config = (*model)->config();
      EXPECT_EQ(config.layers, options.layers);
      EXPECT_EQ(config.head_dim, options.head_dim);
      EXPECT_EQ(config.kv_heads, options.kv_heads);
      EXPECT_EQ(config.vocabulary, options.vocabulary);
      EXPECT_EQ(config.tied_embeddings, tied);
      EXPECT_EQ(config.rope.frequency_divisors.size(), tied ? 16U : 0U);
      expect_complete(**model, options);
    }
  }
}

TEST(ModelFile, TellsWhatTheFileSaysAboutItself) {
  GgufWriter writer = testing::tiny_llama_writer({});
  writer.add_u32("tokenizer.ggml.eot_token_id", 259);
  writer.add_u32("tokenizer.ggml.eom_token_id", 256);
  writer.add_f32("general.sampling.temp", 0.6F);
  writer.add_f32("general.sampling.top_p", 0.95F);
  writer.add_i32("general.sampling.top_k", -1);
  const TempFile file(writer.bytes());
  const Result<std::unique_ptr<ModelFile>> model = open_model_file(file.path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->name(), "tiny llama");
  EXPECT_EQ((*model)->path(), file.path());
  EXPECT_NE((*model)->chat_template().find("<|im_start|>"), std::string_view::npos);
  // eom, eos, and <|im_end|>, which is eot and known by its name.
  EXPECT_EQ((*model)->generation().end_tokens, (std::vector<TokenId>{TokenId{256}, TokenId{257}, TokenId{259}}));
  EXPECT_EQ((*model)->generation().sampling,
            (SamplingOverrides{.temperature = 0.6F, .top_p = 0.95F, .min_p = {}, .top_k = 0, .seed = {}}));
  const std::unique_ptr<ModelFile> plain = open_model_file(testing::tiny_llama_file({}).path()).value();
  EXPECT_EQ(plain->generation().end_tokens, (std::vector<TokenId>{TokenId{257}, TokenId{259}}));
  EXPECT_NE((*model)->gguf()->find("tokenizer.ggml.tokens"), nullptr);
}

TEST(ModelFile, WithoutNameTemplateAndTokenizer) {
  GgufWriter writer;
  writer.add_string("general.architecture", "llama");
  writer.add_u32("llama.block_count", 1);
  for (const char* key : {"embedding_length", "feed_forward_length", "context_length"})
    writer.add_u32(std::string("llama.") + key, 2);
  writer.add_u32("llama.attention.head_count", 1);
  writer.add_f32("llama.attention.layer_norm_rms_epsilon", 1e-6F);
  const std::vector<std::byte> data(16);
  for (const char* name : {"token_embd", "blk.0.attn_q", "blk.0.attn_k", "blk.0.attn_v", "blk.0.attn_output", "blk.0.ffn_gate",
                           "blk.0.ffn_up", "blk.0.ffn_down"})
    writer.add_raw_tensor({.name = std::string(name) + ".weight", .dims = {2, 2}, .data = data});
  for (const char* name : {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"})
    writer.add_raw_tensor({.name = std::string(name) + ".weight", .dims = {2}, .data = std::span(data).first(8)});
  const TempFile file(writer.bytes());
  const Result<std::unique_ptr<ModelFile>> model = open_model_file(file.path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->name(), std::filesystem::path(file.path()).stem().string());
  EXPECT_EQ((*model)->chat_template(), "");
  EXPECT_TRUE((*model)->generation().end_tokens.empty());
  EXPECT_EQ((*model)->generation().sampling, SamplingOverrides{});
}

TEST(ModelFile, TensorsByNameAndShape) {
  const TempFile file = testing::tiny_llama_file({});
  const std::unique_ptr<ModelFile> model = open_model_file(file.path()).value();
  const char* down = "model.layers.1.mlp.down_proj.weight";
  EXPECT_TRUE(is_error(model->require(down, 96, 64), ErrorCode::kCorrupt, {file.path(), down, "[64, 96]", "[96, 64]"}));
  EXPECT_TRUE(is_error(model->find("model.layers.2.mlp.up_proj.weight"), ErrorCode::kCorrupt,
                       {"layers.2.mlp", "'blk.2.ffn_up.weight'", "missing"}));
  EXPECT_TRUE(is_error(model->find("nonsense"), ErrorCode::kCorrupt, {"'nonsense'", "missing"}));
  EXPECT_TRUE(model->optional(down, 64, 96).value().has_value());
  EXPECT_FALSE(model->optional("model.layers.1.self_attn.q_proj.bias", 1, 128).value().has_value());
  EXPECT_FALSE(model->optional("nonsense", 1, 1).value().has_value());
  EXPECT_TRUE(is_error(model->optional(down, 1, 96), ErrorCode::kCorrupt, {down, "[1, 96]"}));
}

TEST(ModelFile, RefusesByName) {
  struct Case {
    std::function<void(GgufWriter&)> add;
    ErrorCode code;
    std::initializer_list<std::string_view> parts;
  };
  const std::vector<std::byte> data(64);
  const auto tensor = [&](const char* name) {
    return [&data, name](GgufWriter& w) { w.add_raw_tensor({.name = name, .dims = {16}, .data = data}); };
  };
  const Case cases[] = {
      {[](GgufWriter& w) { w.add_number("split.count", GgufType::kUint16, std::uint16_t{2}); },
       ErrorCode::kUnsupported,
       {"one of 2 files", "-00001-of-00002.gguf"}},
      {[](GgufWriter& w) { w.add_string("split.count", "2"); }, ErrorCode::kCorrupt, {"split.count", "string"}},
      {tensor("blk.0.attn_norm.bias"), ErrorCode::kUnsupported, {"'blk.0.attn_norm.bias'", "llama"}},
      {tensor("blk.0.attn_q.bias"), ErrorCode::kCorrupt, {"self_attn.q_proj.bias'", "[1, 16]", "[1, 128]"}},
      {tensor("blk.2.attn_norm.weight"), ErrorCode::kUnsupported, {"'blk.2.attn_norm.weight'", "2 layers"}},
      {tensor("blk.0.ffn_gate_inp.weight"), ErrorCode::kUnsupported, {"ffn_gate_inp"}},
      {tensor("mystery"), ErrorCode::kUnsupported, {"'mystery'"}},
      {[](GgufWriter& w) { w.add_f32("general.sampling.top_p", 0); }, ErrorCode::kCorrupt, {"general.sampling.top_p"}},
      {[](GgufWriter& w) { w.add_f32("general.sampling.temp", -1); }, ErrorCode::kCorrupt, {"general.sampling.temp", "-1"}},
      {[](GgufWriter& w) { w.add_u32("tokenizer.ggml.eom_token_id", 320); }, ErrorCode::kCorrupt, {"eom_token_id", "320"}},
  };
  for (const Case& c : cases) {
    GgufWriter writer = testing::tiny_llama_writer({});
    c.add(writer);
    const TempFile file(writer.bytes());
    EXPECT_TRUE(is_error(open_model_file(file.path()), c.code, c.parts)) << *c.parts.begin();
  }
  GgufWriter legacy = testing::tiny_llama_writer({});
  tensor("blk.0.attn_rot_embd.weight")(legacy);
  legacy.add_u8("split.count", 1);
  EXPECT_TRUE(open_model_file(TempFile(legacy.bytes()).path()).ok());
}

TEST(ModelFile, RefusesWhatIsNoModelFile) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  EXPECT_TRUE(is_error(open_model_file(folder), ErrorCode::kNotFound, {folder, "config.json does not exist"}));
  EXPECT_TRUE(is_error(open_model_file("/no/such/file.gguf"), ErrorCode::kNotFound, {"/no/such/file.gguf"}));
  const TempFile text(std::as_bytes(std::span("This is no model.", 17)));
  EXPECT_TRUE(is_error(open_model_file(text.path()), ErrorCode::kCorrupt, {text.path(), "not a GGUF file"}));
}

TEST(TinyLlama, EqualOptionsGiveEqualBytes) {
  EXPECT_EQ(testing::tiny_llama_gguf({}), testing::tiny_llama_gguf({}));
  TinyLlama other;
  other.seed = 2;
  EXPECT_NE(testing::tiny_llama_gguf({}), testing::tiny_llama_gguf(other));
}

}  // namespace
}  // namespace linnet
