#include "weights/folder_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/safetensors.h"
#include "weights/testing/is_error.h"
#include "weights/testing/safetensors_writer.h"
#include "weights/testing/tiny_folder.h"

namespace linnet {
namespace {

using testing::is_error;
using testing::TempFolder;
using testing::TinyFolder;

std::unique_ptr<ModelFile> open(const TempFolder& folder) {
  Result<std::unique_ptr<ModelFile>> model = open_model_file(folder.path());
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? *std::move(model) : nullptr;
}

TEST(FolderModel, OpensTinyLlamasOfEveryPlainFormat) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const bool tied : {false, true}) {
      TinyFolder options;
      options.shape.layer_dtype = dtype;
      options.shape.embedding_dtype = dtype;
      options.shape.tied = tied;
      options.attention_bias = tied;
      options.mlp_bias = !tied;
      options.shards = tied ? 1 : 3;
      const TempFolder folder = testing::tiny_llama_folder(options);
      const std::unique_ptr<ModelFile> model = open(folder);
      ASSERT_NE(model, nullptr);
      EXPECT_EQ(model->config(), (ModelConfig{.architecture = "llama",
                                              .layers = 2,
                                              .hidden = 64,
                                              .intermediate = 96,
                                              .heads = 4,
                                              .kv_heads = 2,
                                              .head_dim = 32,
                                              .vocabulary = 320,
                                              .context_max = 512,
                                              .rms_norm_eps = 1e-5F,
                                              .tied_embeddings = tied,
                                              .attention_bias = tied,
                                              .mlp_bias = !tied}));
      // Embedding, norm, head, and in each layer nine weights and the biases.
      EXPECT_EQ(model->tensors().size(), 2U + (tied ? 0U : 1U) + 2U * (9U + (tied ? 4U : 3U)));
      for (const NamedTensor& named : model->tensors()) {
        const Tensor& tensor = named.tensor;
        EXPECT_EQ(tensor.dtype, dtype);
        EXPECT_EQ(tensor.data.size(), tensor_bytes(dtype, tensor.rows, tensor.cols)) << named.name;
      }
      EXPECT_TRUE(model->require("model.layers.1.mlp.down_proj.weight", 64, 96).ok());
      EXPECT_EQ(model->optional("model.layers.1.mlp.down_proj.bias", 1, 64)->has_value(), !tied);
      EXPECT_EQ(model->gguf(), nullptr);
      EXPECT_TRUE(model->warnings().empty());
    }
  }
}

TEST(FolderModel, OpensEveryAffineFormat) {
  for (const std::int32_t bits : {2, 3, 4, 5, 6, 8}) {
    for (const std::int32_t group : {32, 64, 128}) {
      for (const DType scales : {DType::kF32, DType::kF16, DType::kBF16}) {
        TinyFolder options{.bits = bits, .group = group, .scales = scales, .quantize_embedding = bits != 3};
        options.shape.hidden = 128;
        options.shape.intermediate = 256;
        options.shape.layers = 1;
        const TempFolder folder = testing::tiny_llama_folder(options);
        const std::unique_ptr<ModelFile> model = open(folder);
        ASSERT_NE(model, nullptr);
        const Tensor down = model->require("model.layers.0.mlp.down_proj.weight", 128, 256).value();
        ASSERT_TRUE(down.affine.has_value());
        EXPECT_EQ(down.affine->bits, bits);
        EXPECT_EQ(down.affine->group, group);
        EXPECT_EQ(down.affine->type, scales);
        EXPECT_EQ(down.data.size(), static_cast<std::size_t>(128 * 256 * bits / 8));
        EXPECT_EQ(down.affine->scales.size(), tensor_bytes(scales, 128, 256 / group));
        EXPECT_EQ(down.affine->biases.size(), down.affine->scales.size());
        EXPECT_EQ(model->find("model.embed_tokens.weight")->affine.has_value(), bits != 3);
        EXPECT_FALSE(model->find("model.norm.weight")->affine.has_value());
      }
    }
  }
}

// A file's bytes, unaligned as MLX writes them, are what the tensors see.
TEST(FolderModel, TensorsAreTheFilesBytes) {
  const TempFolder folder = testing::tiny_llama_folder({.shards = 2});
  const std::unique_ptr<ModelFile> model = open(folder);
  ASSERT_NE(model, nullptr);
  const SafetensorsFile second = SafetensorsFile::open(folder.path() + "/model-00002-of-00002.safetensors").value();
  ASSERT_FALSE(second.tensors().empty());
  for (const SafetensorsTensor& tensor : second.tensors()) {
    const Tensor found = model->find(tensor.name).value();
    EXPECT_TRUE(std::equal(tensor.data.begin(), tensor.data.end(), found.data.begin(), found.data.end())) << tensor.name;
  }
}

TEST(FolderModel, TellsWhatTheFolderSays) {
  const TempFolder folder = testing::tiny_llama_folder({});
  folder.write("generation_config.json",
               R"({"eos_token_id":[259],"do_sample":true,"temperature":0.6,"top_p":0.9,"top_k":20,"repetition_penalty":1.1})");
  const std::unique_ptr<ModelFile> model = open(folder);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->generation().end_tokens, (std::vector<TokenId>{TokenId{257}, TokenId{259}}));
  EXPECT_EQ(model->generation().sampling,
            (SamplingOverrides{.temperature = 0.6F, .top_p = 0.9F, .min_p = {}, .top_k = 20, .seed = {}}));
  ASSERT_EQ(model->warnings().size(), 1U);
  EXPECT_NE(model->warnings()[0].find("repetition_penalty of 1.1"), std::string::npos);
  EXPECT_EQ(model->chat_template(), testing::kTinyChatTemplate);
  EXPECT_EQ(model->path(), folder.path());
  EXPECT_EQ(folder.path().substr(folder.path().rfind('/') + 1), model->name());
}

TEST(FolderModel, NamesOfFolders) {
  EXPECT_EQ(folder_name("/a/Qwen2.5-7B"), "Qwen2.5-7B");
  EXPECT_EQ(folder_name("/a/Qwen2.5-7B/"), "Qwen2.5-7B");
  EXPECT_EQ(folder_name("/hub/models--org--some--name/snapshots/abc123"), "org/some--name");
  EXPECT_EQ(folder_name("/hub/models--gpt2/snapshots/abc123/"), "gpt2");
  EXPECT_EQ(folder_name("/hub/other--gpt2/snapshots/abc123"), "abc123");
}

TEST(FolderModel, EndTokensByNameInTheTokenizersConfiguration) {
  const TempFolder folder = testing::tiny_llama_folder({});
  folder.remove("generation_config.json");
  folder.write(
      "tokenizer_config.json",
      R"({"eos_token":{"content":"<|im_end|>"},"added_tokens_decoder":{"258":{"content":"x"},"259":{"content":"<|im_end|>"}}})");
  EXPECT_EQ(open(folder)->generation().end_tokens, (std::vector<TokenId>{TokenId{257}, TokenId{259}}));
}

TEST(FolderModel, NotSampledIsGreedy) {
  const TempFolder folder = testing::tiny_llama_folder({});
  folder.write("generation_config.json", R"({"do_sample":false,"temperature":0.6,"top_p":0.9})");
  EXPECT_EQ(open(folder)->generation().sampling, (SamplingOverrides{.temperature = 0.0F}));
}

TEST(FolderModel, PassesOverWhatNoArithmeticUses) {
  TinyFolder options;
  options.shape.tied = true;
  const TempFolder folder = testing::tiny_llama_folder(options);
  const std::size_t tensors = open(folder)->tensors().size();
  testing::SafetensorsWriter extra;
  const std::vector<std::byte> data(64);
  extra.add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", std::vector<std::int64_t>{16}, data);
  extra.add("lm_head.weight", "F32", std::vector<std::int64_t>{4, 4}, data);
  folder.write("model-extra.safetensors", extra.bytes());
  const std::unique_ptr<ModelFile> model = open(folder);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->tensors().size(), tensors);
}

// The tensors of a text model inside one that sees, in the two ways that files name them.
TEST(FolderModel, LanguageModelsInsideOthers) {
  for (const std::string prefix : {"language_model.", "model.language_model."}) {
    const TempFolder flat = testing::tiny_llama_folder({.bits = 4});
    const SafetensorsFile file = SafetensorsFile::open(flat.path() + "/model.safetensors").value();
    testing::SafetensorsWriter writer;
    for (const SafetensorsTensor& tensor : file.tensors()) {
      const bool model = prefix == "model.language_model." && tensor.name.starts_with("model.");
      writer.add(prefix + (model ? tensor.name.substr(6) : tensor.name), tensor.dtype, tensor.shape, tensor.data);
    }
    writer.add("vision_tower.patch.weight", "F16", std::vector<std::int64_t>{1, 1, 1}, std::vector<std::byte>(2));
    const TempFolder nested;
    nested.write("model.safetensors", writer.bytes());
    nested.write("config.json", R"({"model_type":"llava","vision_config":{"hidden_size":7},"rope_theta":1.0,
      "quantization":{"bits":4,"group_size":32,"mode":"affine","language_model.model.layers.1.mlp.up_proj":{"bits":4,"group_size":32}},
      "text_config":{"model_type":"llama","hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,
      "num_key_value_heads":2,"head_dim":32,"vocab_size":320,"max_position_embeddings":512,"rms_norm_eps":1e-5,
      "tie_word_embeddings":true,"rope_parameters":{"rope_theta":500000.0,"rope_type":"default"}}})");
    const std::unique_ptr<ModelFile> a = open(flat);
    const std::unique_ptr<ModelFile> b = open(nested);
    ASSERT_NE(b, nullptr) << prefix;
    ASSERT_EQ(a->tensors().size(), b->tensors().size());
    for (std::size_t i = 0; i < a->tensors().size(); ++i) EXPECT_EQ(a->tensors()[i].name, b->tensors()[i].name);
    EXPECT_EQ(b->config().rope.theta, 500000.0F);
  }
}

struct Refusal {
  std::string config;  // over config.json's keys
  std::int32_t bits;   // of the model's weights
  ErrorCode code;
  std::initializer_list<std::string_view> parts;
};

TEST(FolderModel, RefusesByName) {
  constexpr ErrorCode kCorrupt = ErrorCode::kCorrupt;
  constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
  const Refusal cases[] = {
      {R"({"quantization":{"bits":4,"group_size":32,"mode":"mxfp4"}})", 4, kUnsupported, {"'quantization'", "'mxfp4'", "affine"}},
      {R"({"quantization":null,"quantization_config":{"quant_method":"gptq","bits":4}})", 4, kUnsupported, {"'gptq'", "known"}},
      {R"({"quantization":{"bits":7,"group_size":32}})", 4, kUnsupported, {"7 bits", "2, 3, 4, 5, 6 and 8"}},
      {R"({"quantization":{"bits":4,"group_size":16}})", 4, kUnsupported, {"group_size 16", "32, 64 and 128"}},
      {R"({"quantization":{"bits":4}})", 4, kCorrupt, {"'group_size' is missing", "'quantization'"}},
      {R"({"quantization":7})", 4, kCorrupt, {"'quantization'", "'7'"}},
      {R"({"quantization":null})", 4, kCorrupt, {"U32", "config.json says that it is not"}},
      {R"({"quantization":{"bits":4,"group_size":32,"model.layers.1.mlp.up_proj":false}})",
       4,
       kCorrupt,
       {"layers.1.mlp.up_proj"}},
      {R"({"quantization":{"bits":4,"group_size":32,"model.layers.1.mlp.up_proj":{"bits":8,"group_size":32}}})",
       4,
       kCorrupt,
       {"layers.1.mlp.up_proj", "4 bits in groups of 32", "config.json says 8 bits"}},
      {R"({"quantization":{"bits":4,"group_size":32,"model.layers.1.mlp.up_proj":{"bits":4,"group_size":32}}})",
       0,
       kCorrupt,
       {"layers.1.mlp.up_proj", "is not quantized"}},
      {R"({"intermediate_size":95})", 4, kCorrupt, {"down_proj", "95 columns"}},
      {R"({"intermediate_size":160})", 0, kCorrupt, {"mlp.down_proj", "[64, 96]", "[64, 160]"}},
      {R"({"num_hidden_layers":1})", 0, kUnsupported, {"model.layers.1.", "1 layers"}},
      {R"({"num_hidden_layers":3})", 0, kCorrupt, {"model.layers.2.", "missing"}},
      {R"({"attention_bias":true})", 0, kCorrupt, {"self_attn.k_proj.bias", "missing"}},
      {R"({"tie_word_embeddings":false})", 0, kCorrupt, {"lm_head.weight", "missing"}},
      {R"({"vocab_size":319})", 0, kCorrupt, {"embed_tokens", "[320, 64]", "[319, 64]"}},
  };
  for (const Refusal& c : cases) {
    const TempFolder folder = testing::tiny_llama_folder({.bits = c.bits, .config = c.config});
    EXPECT_TRUE(is_error(open_model_file(folder.path()), c.code, c.parts)) << c.config;
  }
}

// A block that names another width for most modules than the file has: shapes decide, as in mlx-lm.
TEST(FolderModel, ShapesDecideForModulesThatAreNotNamed) {
  const TempFolder folder = testing::tiny_llama_folder({.bits = 6, .config = R"({"quantization":{"bits":4,"group_size":64}})"});
  EXPECT_EQ(open(folder)->find("model.layers.0.mlp.up_proj.weight")->affine->bits, 6);
}

TEST(FolderModel, RefusesTensorsThatDoNotFit) {
  struct Extra {
    std::string name;
    std::string dtype;
    std::vector<std::int64_t> shape;
    ErrorCode code;
    std::initializer_list<std::string_view> parts;
  };
  const Extra cases[] = {
      {"mystery", "F32", {2, 2}, ErrorCode::kUnsupported, {"'mystery'", "no place", "llama"}},
      {"model.layers.0.self_attn.q_proj.bias", "F32", {4}, ErrorCode::kUnsupported, {"q_proj.bias", "no place"}},
      {"model.layers.0.self_attn.q_proj.scales", "F32", {2, 2}, ErrorCode::kUnsupported, {"q_proj.scales", "no place"}},
      {"lm_head.weight", "F64", {1, 2}, ErrorCode::kUnsupported, {"lm_head.weight", "F64", "BF16"}},
      {"lm_head.weight", "F32", {4}, ErrorCode::kCorrupt, {"lm_head.weight", "[1, 4]", "[320, 64]"}},
      {"lm_head.weight", "F32", {2, 2, 1}, ErrorCode::kCorrupt, {"lm_head.weight", "neither a matrix nor a vector"}},
      {"lm_head.weight", "F32", {}, ErrorCode::kCorrupt, {"lm_head.weight", "neither"}},
      {"lm_head.weight", "U32", {2, 2}, ErrorCode::kCorrupt, {"lm_head.weight", "U32", "config.json says that it is not"}},
  };
  for (const Extra& c : cases) {
    const TempFolder folder = testing::tiny_llama_folder({.config = R"({"tie_word_embeddings":false})"});
    testing::SafetensorsWriter writer;
    const std::size_t bytes = c.dtype == "F64" || !c.shape.empty() ? 16 : 4;
    writer.add(c.name, c.dtype, c.shape, std::vector<std::byte>(bytes));
    folder.write("model-extra.safetensors", writer.bytes());
    EXPECT_TRUE(is_error(open_model_file(folder.path()), c.code, c.parts)) << c.name << " " << c.dtype;
  }
}

}  // namespace
}  // namespace linnet
