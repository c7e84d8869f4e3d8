#include "weights/folder_config.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "weights/testing/is_error.h"

namespace linnet {
namespace {

using testing::is_error;

constexpr char kBase[] =
    R"({"model_type":"llama","hidden_size":64,"intermediate_size":96,"num_hidden_layers":3,"num_attention_heads":4,)"
    R"("vocab_size":320,"max_position_embeddings":2048,"rms_norm_eps":1e-6})";

// The base with `keys` over it.
Result<ModelConfig> read(const std::string& keys) {
  Json json = Json::parse(kBase);
  json.update(Json::parse(keys));
  const Result<ConfigJson> config = ConfigJson::make(std::move(json), "config.json");
  if (!config.ok()) return config.error();
  return read_folder_config(*config);
}

TEST(FolderConfig, Defaults) {
  const Result<ModelConfig> config = read("{}");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*config, (ModelConfig{.architecture = "llama",
                                  .layers = 3,
                                  .hidden = 64,
                                  .intermediate = 96,
                                  .heads = 4,
                                  .kv_heads = 4,
                                  .head_dim = 16,
                                  .vocabulary = 320,
                                  .context_max = 2048,
                                  .rms_norm_eps = 1e-6F,
                                  .tied_embeddings = true}));
  EXPECT_FALSE(read(R"({"text_config":{"hidden_size":64}})")->tied_embeddings);  // as mlx-lm decides inside other models
  EXPECT_FALSE(read(R"({"tie_word_embeddings":false})")->tied_embeddings);
}

TEST(FolderConfig, HarmlessKeysChangeNothing) {
  const char* harmless[] = {
      R"({"model_type":"mistral","sliding_window":null})",
      R"({"sliding_window":4096})",
      R"({"sliding_window":1024,"use_sliding_window":false})",
      R"({"layer_types":["full_attention","full_attention","full_attention"],"sliding_window":1024})",
      R"({"head_dim":null,"num_key_value_heads":null,"rope_scaling":null,"hidden_act":"silu","num_experts":0})",
      R"({"rope_scaling":{"type":"default"},"partial_rotary_factor":1.0,"quantize_activations":false})",
      R"({"rope_scaling":{"type":"default","rope_type":"default"},"pretraining_tp":1,"attention_dropout":0.0})",
  };
  for (const char* keys : harmless) {
    const Result<ModelConfig> config = read(keys);
    ASSERT_TRUE(config.ok()) << keys << config.error().message;
    EXPECT_EQ(*config, *read("{}")) << keys;
  }
}

TEST(FolderConfig, RopeKinds) {
  struct Case {
    std::string keys;
    RopeConfig rope;
  };
  const std::string eight = "[1,1,1,1,2,2,2,2.5]";
  const Case cases[] = {
      {R"({"rope_theta":5e5,"rope_traditional":true})", {.theta = 5e5F, .interleaved = true}},
      {R"({"rope_scaling":{"type":"linear","factor":2.5}})", {.kind = RopeKind::kLinear, .factor = 2.5F}},
      {R"({"rope_scaling":{"rope_type":"llama3","factor":8,"original_max_position_embeddings":1024}})",
       {.kind = RopeKind::kLlama3, .factor = 8, .original_context = 1024}},
      {R"({"rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":512,"beta_fast":16,"beta_slow":2,"mscale":0.7,
           "mscale_all_dim":0.5}})",
       {.kind = RopeKind::kYarn,
        .factor = 4,
        .original_context = 512,
        .beta_fast = 16,
        .beta_slow = 2,
        .mscale = 0.7F,
        .mscale_all_dim = 0.5F}},
      {R"({"rope_scaling":{"type":"longrope","short_factor":)" + eight + R"(,"long_factor":)" + eight +
           R"(},"original_max_position_embeddings":512})",
       {.kind = RopeKind::kLongRope,
        .factor = 4,
        .original_context = 512,
        .short_factor = {1, 1, 1, 1, 2, 2, 2, 2.5F},
        .long_factor = {1, 1, 1, 1, 2, 2, 2, 2.5F}}},
  };
  for (const Case& c : cases) {
    const Result<ModelConfig> config = read(c.keys);
    ASSERT_TRUE(config.ok()) << c.keys << config.error().message;
    EXPECT_EQ(config->rope, c.rope) << c.keys;
  }
}

TEST(FolderConfig, NamesWhatIsMissing) {
  const Json base = Json::parse(kBase);
  for (const auto& entry : base.items()) {
    const Result<ModelConfig> config = read("{\"" + entry.key() + "\":null}");
    EXPECT_TRUE(is_error(config, ErrorCode::kCorrupt, {"config.json", entry.key(), "missing"}));
  }
}

TEST(FolderConfig, RefusesByNameAndValue) {
  struct Case {
    const char* keys;
    ErrorCode code;
    std::initializer_list<std::string_view> parts;
  };
  constexpr ErrorCode kCorrupt = ErrorCode::kCorrupt;
  constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
  const Case cases[] = {
      {R"({"model_type":"gpt9"})", kUnsupported, {"'gpt9'", "llama, mistral"}},
      {R"({"model_type":7})", kCorrupt, {"model_type", "string"}},
      {R"({"text_config":[]})", kCorrupt, {"text_config", "an object"}},
      {R"({"text_config":{"model_type":"gpt9"}})", kUnsupported, {"'gpt9'"}},
      {R"({"num_hidden_layers":0})", kCorrupt, {"num_hidden_layers", "'0'", "1 to 10000"}},
      {R"({"num_hidden_layers":2.0})", kCorrupt, {"num_hidden_layers", "'2.0'"}},
      {R"({"hidden_size":18446744073709551615})", kCorrupt, {"hidden_size", "1048576"}},
      {R"({"hidden_size":-64})", kCorrupt, {"hidden_size", "'-64'"}},
      {R"({"hidden_size":65})", kCorrupt, {"num_attention_heads", "no divisor", "65"}},
      {R"({"num_key_value_heads":3})", kCorrupt, {"num_key_value_heads", "3", "4 heads"}},
      {R"({"head_dim":15})", kCorrupt, {"head_dim", "15", "even"}},
      {R"({"rms_norm_eps":0})", kCorrupt, {"rms_norm_eps", "above 0"}},
      {R"({"rms_norm_eps":"small"})", kCorrupt, {"rms_norm_eps", "number"}},
      {R"({"tie_word_embeddings":1})", kCorrupt, {"tie_word_embeddings", "true or false"}},
      {R"({"num_local_experts":8})", kUnsupported, {"num_local_experts", "'8'"}},
      {R"({"final_logit_softcapping":30.0})", kUnsupported, {"final_logit_softcapping"}},
      {R"({"embedding_multiplier":12})", kUnsupported, {"embedding_multiplier"}},
      {R"({"quantize_activations":true})", kUnsupported, {"quantize_activations"}},
      {R"({"model_file":"model.py"})", kUnsupported, {"model_file", "'\"model.py\"'"}},
      {R"({"hidden_act":"gelu"})", kUnsupported, {"hidden_act", "silu"}},
      {R"({"sliding_window":1024})", kUnsupported, {"sliding_window", "'1024'"}},
      {R"({"layer_types":["full_attention","sliding_attention"]})", kUnsupported, {"layer_types", "sliding_attention"}},
      {R"({"rope_theta":0.5})", kCorrupt, {"rope theta is 0.5"}},
      {R"({"rope_theta":1e300})", kCorrupt, {"rope theta is"}},
      {R"({"rope_scaling":"linear"})", kCorrupt, {"rope_scaling", "an object"}},
      {R"({"rope_scaling":{"type":"dynamic","factor":2}})",
       kUnsupported,
       {"'dynamic'", "default, linear, llama3, yarn, longrope"}},
      {R"({"rope_scaling":{"type":"linear","rope_type":"yarn","factor":2}})", kCorrupt, {"'linear'", "'yarn'", "equal"}},
      {R"({"rope_scaling":{"type":"linear"}})", kCorrupt, {"rope_scaling.factor", "missing"}},
      {R"({"rope_scaling":{"type":"linear","factor":0}})", kCorrupt, {"rope factor is 0"}},
      {R"({"rope_scaling":{"type":"yarn","factor":2}})", kCorrupt, {"original_max_position_embeddings", "missing"}},
      {R"({"rope_scaling":{"type":"yarn","factor":2,"original_max_position_embeddings":512,"beta_fast":0.5}})",
       kCorrupt,
       {"beta_fast"}},
      {R"({"rope_scaling":{"type":"yarn","factor":2,"original_max_position_embeddings":512,"attention_factor":1.2}})",
       kUnsupported,
       {"attention_factor", "absence"}},
      {R"({"rope_scaling":{"type":"yarn","factor":2,"original_max_position_embeddings":512,"truncate":false}})",
       kUnsupported,
       {"truncate"}},
      {R"({"rope_scaling":{"type":"llama3","factor":2,"original_max_position_embeddings":512,"low_freq_factor":4}})",
       kCorrupt,
       {"high_freq_factor is 4"}},
      {R"({"rope_scaling":{"type":"longrope","original_max_position_embeddings":512,"short_factor":[1],"long_factor":[1]}})",
       kCorrupt,
       {"short_factor has 1 numbers", "8 are wanted"}},
      {R"({"rope_scaling":{"type":"longrope","original_max_position_embeddings":512,"short_factor":["a"]}})",
       kCorrupt,
       {"short_factor", "numbers"}},
      {R"({"rope_parameters":{"partial_rotary_factor":0.5}})", kUnsupported, {"partial_rotary_factor", "0.5"}},
      {R"({"rope_parameters":{"full_attention":{"rope_type":"default"}}})", kUnsupported, {"full_attention", "differ"}},
  };
  for (const Case& c : cases) EXPECT_TRUE(is_error(read(c.keys), c.code, c.parts)) << c.keys;
}

}  // namespace
}  // namespace linnet
