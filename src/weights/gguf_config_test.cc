#include "weights/gguf_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "weights/testing/gguf_writer.h"
#include "weights/testing/is_error.h"

namespace linnet {
namespace {

using testing::GgufWriter;
using testing::is_error;

// A configuration's keys, to be changed one by one, and the embedding's shape.
struct Keys {
  using Add = std::function<void(GgufWriter&, std::string_view)>;
  std::map<std::string, Add> keys;
  std::vector<std::uint64_t> embedding = {64, 10};
  std::uint32_t embedding_type = 0;  // F32; one that is not known has no data
  std::vector<float> rope_freqs;
  std::vector<float> factors;  // short and long
  bool head = false;

  Keys() {
    set("general.architecture", "llama");
    set("llama.block_count", 3);
    set("llama.embedding_length", 64);
    set("llama.feed_forward_length", 96);
    set("llama.context_length", 2048);
    set("llama.attention.head_count", 4);
    set("llama.attention.head_count_kv", 2);
    set("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  }
  void set(const std::string& key, std::int64_t value) {
    keys[key] = [=](GgufWriter& w, std::string_view k) { w.add_number(k, GgufType::kInt64, value); };
  }
  void set(const std::string& key, int value) { set(key, std::int64_t{value}); }
  void set(const std::string& key, float value) {
    keys[key] = [=](GgufWriter& w, std::string_view k) { w.add_f32(k, value); };
  }
  void set(const std::string& key, bool value) {
    keys[key] = [=](GgufWriter& w, std::string_view k) { w.add_bool(k, value); };
  }
  void set(const std::string& key, const char* value) {
    keys[key] = [=](GgufWriter& w, std::string_view k) { w.add_string(k, value); };
  }
  void set(const std::string& key, const std::vector<std::uint32_t>& values) {
    keys[key] = [=](GgufWriter& w, std::string_view k) { w.add_numbers(k, GgufType::kUint32, values); };
  }

  Result<ModelConfig> read() const {
    GgufWriter writer;
    for (const auto& [key, add] : keys) add(writer, key);
    if (!embedding.empty()) {
      std::vector<std::byte> data;
      if (embedding_type == 0)
        data.resize(std::accumulate(embedding.begin(), embedding.end(), std::size_t{4}, std::multiplies<>()));
      writer.add_raw_tensor({.name = "token_embd.weight", .dims = embedding, .gguf_type = embedding_type, .data = data});
    }
    if (head) writer.add_raw_tensor({.name = "output.weight", .dims = {1}, .data = std::vector<std::byte>(4)});
    if (!rope_freqs.empty()) {
      writer.add_raw_tensor(
          {.name = "rope_freqs.weight", .dims = {rope_freqs.size()}, .data = std::as_bytes(std::span(rope_freqs))});
    }
    for (const char* name : {"rope_factors_short.weight", "rope_factors_long.weight"}) {
      if (!factors.empty())
        writer.add_raw_tensor({.name = name, .dims = {factors.size()}, .data = std::as_bytes(std::span(factors))});
    }
    const std::vector<std::byte> bytes = writer.bytes();
    const Result<GgufFile> file = GgufFile::parse(bytes, "model.gguf");
    if (!file.ok()) return file.error();
    return read_gguf_config(std::span(&*file, 1));
  }
};

TEST(GgufConfig, ReadsWhatIsThere) {
  Keys keys;
  keys.set("llama.rope.freq_base", 500000.0F);
  keys.set("llama.rope.dimension_count", 16);
  const Result<ModelConfig> config = keys.read();
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(*config, (ModelConfig{.architecture = "llama",
                                  .layers = 3,
                                  .hidden = 64,
                                  .intermediate = 96,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 16,
                                  .vocabulary = 10,
                                  .context_max = 2048,
                                  .rms_norm_eps = 1e-5F,
                                  .tied_embeddings = true,
                                  .rope = {.theta = 500000.0F, .interleaved = true, .frequency_divisors = {}}}));
}

TEST(GgufConfig, DefaultsAndOtherShapes) {
  Keys keys;
  keys.keys.erase("llama.attention.head_count_kv");
  keys.head = true;
  ASSERT_TRUE(keys.read().ok()) << keys.read().error().message;
  EXPECT_EQ(keys.read()->kv_heads, 4);
  EXPECT_FALSE(keys.read()->tied_embeddings);
  EXPECT_EQ(keys.read()->rope.theta, 10000.0F);

  keys.set("llama.attention.head_count_kv", {1, 1, 1});
  keys.set("llama.attention.head_count", {4, 4, 4});
  keys.set("llama.feed_forward_length", {7, 7, 7});
  keys.set("llama.attention.key_length", 128);
  keys.set("llama.attention.value_length", 128);
  keys.set("llama.rope.dimension_count", 128);
  keys.set("llama.attention.sliding_window", 4096);  // longer than the context
  keys.set("llama.expert_count", 0);
  keys.set("llama.logit_scale", 1.0F);
  keys.set("llama.attention.causal", true);
  keys.set("tokenizer.ggml.tokens", {0, 0, 0, 0});
  ASSERT_TRUE(keys.read().ok()) << keys.read().error().message;
  EXPECT_EQ(keys.read()->kv_heads, 1);
  EXPECT_EQ(keys.read()->intermediate, 7);
  EXPECT_EQ(keys.read()->head_dim, 128);
}

TEST(GgufConfig, RopeScaling) {
  Keys keys;
  keys.set("llama.rope.scaling.type", "none");
  keys.set("llama.rope.scaling.factor", 4.0F);
  EXPECT_EQ(keys.read()->rope.kind, RopeKind::kDefault);
  keys.set("llama.rope.scaling.type", "linear");
  EXPECT_EQ(keys.read()->rope.kind, RopeKind::kLinear);
  EXPECT_EQ(keys.read()->rope.factor, 4.0F);
  keys.rope_freqs = {1, 1, 1, 1, 2, 2, 8, 8};
  EXPECT_EQ(keys.read()->rope.frequency_divisors, keys.rope_freqs);
  keys.keys.erase("llama.rope.scaling.type");
  EXPECT_EQ(keys.read()->rope.kind, RopeKind::kDefault);
  keys.set("llama.rope.scale_linear", 2.0F);
  EXPECT_EQ(keys.read()->rope.factor, 4.0F);
  keys.keys.erase("llama.rope.scaling.factor");
  EXPECT_EQ(keys.read()->rope.factor, 2.0F);
}

TEST(GgufConfig, Yarn) {
  Keys keys;
  keys.set("llama.rope.scaling.type", "yarn");
  keys.set("llama.rope.scaling.factor", 4.0F);
  keys.set("llama.rope.scaling.original_context_length", 512);
  keys.set("llama.rope.scaling.yarn_beta_fast", 16.0F);
  EXPECT_EQ(keys.read()->rope,
            (RopeConfig{.kind = RopeKind::kYarn, .interleaved = true, .factor = 4, .original_context = 512, .beta_fast = 16}));
  keys.set("llama.rope.scaling.attn_factor", 1.5F);
  EXPECT_TRUE(is_error(keys.read(), ErrorCode::kUnsupported, {"attn_factor", "1.5", "only 1"}));
}

TEST(GgufConfig, LongRope) {
  Keys keys;
  keys.set("llama.rope.scaling.type", "longrope");
  keys.set("llama.rope.scaling.original_context_length", 512);
  keys.set("llama.rope.scaling.attn_factor", 1.10554F);  // sqrt(1 + ln 4 / ln 512)
  keys.factors = {1, 1, 1, 1, 2, 2, 2, 2};
  const Result<ModelConfig> config = keys.read();
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->rope, (RopeConfig{.kind = RopeKind::kLongRope,
                                      .interleaved = true,
                                      .factor = 4,
                                      .original_context = 512,
                                      .short_factor = keys.factors,
                                      .long_factor = keys.factors}));
  keys.set("llama.rope.scaling.attn_factor", 1.2F);
  EXPECT_TRUE(is_error(keys.read(), ErrorCode::kUnsupported, {"attn_factor", "1.2", "1.10554"}));
}

TEST(GgufConfig, NamesWhatIsMissing) {
  const Keys whole;
  for (const auto& entry : whole.keys) {
    if (entry.first == "llama.attention.head_count_kv") continue;
    Keys keys;
    keys.keys.erase(entry.first);
    EXPECT_TRUE(is_error(keys.read(), ErrorCode::kCorrupt, {"model.gguf", entry.first, "missing"}));
  }
  Keys keys;
  keys.embedding.clear();
  EXPECT_TRUE(is_error(keys.read(), ErrorCode::kCorrupt, {"token_embd.weight", "missing"}));
}

TEST(GgufConfig, RefusesByNameAndValue) {
  struct Case {
    std::function<void(Keys&)> change;
    ErrorCode code;
    std::initializer_list<std::string_view> parts;
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr ErrorCode kCorrupt = ErrorCode::kCorrupt;
  constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
  const Case cases[] = {
      {[](Keys& k) { k.set("general.architecture", "gpt9"); }, kUnsupported, {"'gpt9'", "known are: llama"}},
      {[](Keys& k) { k.set("general.architecture", 7); }, kCorrupt, {"general.architecture", "i64"}},
      {[](Keys& k) { k.set("llama.block_count", 0); }, kCorrupt, {"block_count", "is 0", "10000"}},
      {[](Keys& k) { k.set("llama.block_count", 10'001); }, kCorrupt, {"block_count", "10001"}},
      {[](Keys& k) { k.set("llama.block_count", -1); }, kCorrupt, {"block_count", "-1"}},
      {[](Keys& k) { k.set("llama.block_count", 2.0F); }, kCorrupt, {"block_count", "f32"}},
      {[](Keys& k) { k.set("llama.embedding_length", std::int64_t{1} << 40); }, kCorrupt, {"embedding_length", "1099511627776"}},
      {[](Keys& k) { k.set("llama.embedding_length", 65); }, kCorrupt, {"head_count", "no divisor", "65"}},
      {[](Keys& k) { k.set("llama.context_length", 0); }, kCorrupt, {"context_length", "is 0"}},
      {[](Keys& k) { k.set("llama.context_length", "long"); }, kCorrupt, {"context_length", "string"}},
      {[](Keys& k) {
         k.set("llama.feed_forward_length", {96, 96, 32});
       },
       kUnsupported,
       {"feed_forward_length", "layer 2", "32"}},
      {[](Keys& k) { k.set("llama.attention.layer_norm_rms_epsilon", 0.0F); }, kCorrupt, {"epsilon", "is 0"}},
      {[](Keys& k) { k.set("llama.attention.layer_norm_rms_epsilon", kNan); }, kCorrupt, {"epsilon", "nan"}},
      {[](Keys& k) { k.set("llama.attention.head_count", 0); }, kCorrupt, {"head_count", "is 0"}},
      {[](Keys& k) { k.set("llama.attention.head_count", 5000); }, kCorrupt, {"head_count", "5000", "4096"}},
      {[](Keys& k) { k.set("llama.attention.head_count_kv", 3); }, kCorrupt, {"head_count_kv", "is 3", "4 heads"}},
      {[](Keys& k) {
         k.set("llama.attention.head_count_kv", {2, 1, 2});
       },
       kUnsupported,
       {"head_count_kv", "is 2 in layer 0 and 1 in layer 1"}},
      {[](Keys& k) {
         k.set("llama.attention.head_count_kv", {2, 2});
       },
       kCorrupt,
       {"head_count_kv", "2 elements for 3 layers"}},
      {[](Keys& k) { k.set("llama.attention.head_count_kv", std::vector<std::uint32_t>()); },
       kCorrupt,
       {"head_count_kv", "0 elements"}},
      {[](Keys& k) { k.set("llama.attention.key_length", 1025); }, kCorrupt, {"key_length", "1025", "1024"}},
      {[](Keys& k) { k.set("llama.attention.key_length", 15); }, kCorrupt, {"key_length", "15", "even"}},
      {[](Keys& k) { k.set("llama.attention.value_length", 8); }, kUnsupported, {"value_length", "is 8", "16"}},
      {[](Keys& k) { k.set("llama.rope.dimension_count", 8); }, kUnsupported, {"rope.dimension_count", "is 8", "(16)"}},
      {[](Keys& k) { k.set("llama.rope.freq_base", 0.5F); }, kCorrupt, {"theta is 0.5"}},
      {[](Keys& k) { k.set("llama.rope.freq_base", kNan); }, kCorrupt, {"theta is nan"}},
      {[](Keys& k) { k.set("llama.rope.scaling.type", "ntk"); }, kUnsupported, {"rope.scaling.type", "'ntk'", "linear", "yarn"}},
      {[](Keys& k) { k.set("llama.rope.scaling.type", "yarn"); }, kCorrupt, {"original_context_length", "missing"}},
      {[](Keys& k) {
         k.set("llama.rope.scaling.type", "longrope");
         k.set("llama.rope.scaling.original_context_length", 512);
       },
       kCorrupt,
       {"short_factor has 0 numbers"}},
      {[](Keys& k) { k.set("llama.rope.scaling.type", "linear"); }, kCorrupt, {"rope.scaling.factor", "missing"}},
      {[](Keys& k) { k.set("llama.rope.scale_linear", 0.0F); }, kCorrupt, {"rope factor is 0"}},
      {[](Keys& k) {
         k.rope_freqs = {1, 1};
       },
       kCorrupt,
       {"rope_freqs.weight", "[1, 2]", "[1, 8]"}},
      {[](Keys& k) { k.rope_freqs = {1, 1, 1, 0, 1, 1, 1, 1}; }, kCorrupt, {"frequency divisors", "0 at index 3"}},
      {[](Keys& k) { k.rope_freqs = {1, 1, 1, 1, 1, 1, 1, kNan}; }, kCorrupt, {"frequency divisors", "nan at index 7"}},
      {[](Keys& k) { k.set("llama.expert_count", 8); }, kUnsupported, {"expert_count", "is 8"}},
      {[](Keys& k) { k.set("llama.attention.scale", 0.5F); }, kUnsupported, {"attention.scale", "0.5"}},
      {[](Keys& k) { k.set("llama.embedding_scale", 12.0F); }, kUnsupported, {"embedding_scale", "12"}},
      {[](Keys& k) { k.set("llama.attention.causal", false); }, kUnsupported, {"attention.causal", "false"}},
      {[](Keys& k) { k.set("llama.attention.sliding_window", 1024); }, kUnsupported, {"sliding_window", "1024"}},
      {[](Keys& k) {
         k.embedding = {32, 10};
       },
       kCorrupt,
       {"token_embd.weight", "[10, 32]", "64"}},
      {[](Keys& k) {
         k.embedding = {64, 2, 2};
       },
       kCorrupt,
       {"token_embd.weight", "3 dimensions"}},
      {[](Keys& k) {
         k.embedding_type = 99, k.embedding = {64, (1U << 24U) + 1};
       },
       kCorrupt,
       {"token_embd.weight", "[16777217, 64]", "at most 1048576"}},
      {[](Keys& k) { k.set("tokenizer.ggml.tokens", std::vector<std::uint32_t>(11)); },
       kCorrupt,
       {"tokenizer.ggml.tokens", "11 tokens", "[10, 64]"}},
  };
  for (const Case& c : cases) {
    Keys keys;
    c.change(keys);
    EXPECT_TRUE(is_error(keys.read(), c.code, c.parts)) << *c.parts.begin();
  }
}

}  // namespace
}  // namespace linnet
