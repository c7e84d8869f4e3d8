// Faults that readers of model folders are known for, by number; those of GGUF files are in gguf_hostile_test.cc.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/model_file.h"
#include "weights/safetensors.h"
#include "weights/testing/is_error.h"
#include "weights/testing/safetensors_writer.h"
#include "weights/testing/tiny_folder.h"

namespace linnet {
namespace {

using testing::is_error;
using testing::safetensors_bytes;
using testing::TempFolder;

constexpr ErrorCode kCorrupt = ErrorCode::kCorrupt;

Result<SafetensorsFile> parse(const std::vector<std::byte>& bytes) { return SafetensorsFile::parse(bytes, "model.safetensors"); }

Result<SafetensorsFile> parse(std::string_view header, std::size_t data_bytes) {
  const std::vector<std::byte> bytes = safetensors_bytes(header, std::vector<std::byte>(data_bytes));
  return parse(bytes);  // its views are not looked at
}

// As parse(), with any value in the eight bytes of the header's size.
Result<SafetensorsFile> parse_sized(std::uint64_t header_bytes, std::string_view rest) {
  std::vector<std::byte> bytes = safetensors_bytes(rest);
  std::memcpy(bytes.data(), &header_bytes, sizeof header_bytes);
  return parse(bytes);
}

TEST(Case, BL104_DataOffsetsAreHeldAgainstShapeAndFile) {
  EXPECT_TRUE(is_error(parse(R"({"t":{"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]}})", 4), kCorrupt,
                       {"model.safetensors", "'t'", "4000000 bytes", "data_offsets of 4"}));
  EXPECT_TRUE(is_error(parse(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4), kCorrupt,
                       {"'t'", "0 to 8", "4 bytes of data"}));
  EXPECT_TRUE(is_error(parse(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", 8), kCorrupt, {"'t'", "8 to 4"}));
  EXPECT_TRUE(
      is_error(parse(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4), kCorrupt, {"'t'"}));
  EXPECT_TRUE(parse(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4).ok());
}

TEST(Case, BL106_OddSafetensorsHeaders) {
  const std::string good =
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  EXPECT_TRUE(parse(good, 4).ok());
  EXPECT_TRUE(parse(good + "   ", 4).ok());  // padding that the format allows
  EXPECT_TRUE(is_error(parse(good + std::string(3, '\0'), 4), kCorrupt, {"header is not valid JSON"}));
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}}) {
    EXPECT_TRUE(is_error(parse_sized(size, good), kCorrupt, {"would have " + std::to_string(size) + " bytes"}));
  }
  EXPECT_TRUE(is_error(parse_sized(7, good), kCorrupt, {"not valid JSON"}));
  EXPECT_TRUE(is_error(parse_sized(std::uint64_t{1} << 63U, good), kCorrupt, {"9223372036854775808 bytes", "100000000"}));
  EXPECT_TRUE(is_error(parse_sized(130'000'000, good), kCorrupt, {"130000000 bytes", "100000000"}));
  EXPECT_TRUE(is_error(parse_sized(good.size() + 1, good), kCorrupt, {"and the file has", "incomplete"}));
  EXPECT_TRUE(is_error(parse(std::vector<std::byte>()), kCorrupt, {"it has 0 bytes"}));
  EXPECT_TRUE(is_error(parse(std::vector<std::byte>(7)), kCorrupt, {"it has 7 bytes"}));
  const std::string a = R"("a":{"dtype":"U8","shape":[2],"data_offsets":)";
  EXPECT_TRUE(is_error(parse("{" + a + "[0,2]}," + a + "[2,4]}}", 4), kCorrupt, {"two equal keys", "'a'"}));
  const std::string b = R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":)";
  EXPECT_TRUE(is_error(parse("{" + a + "[0,2]}" + b + "[1,3]}}", 3), kCorrupt, {"'b'", "overlap"}));
  EXPECT_TRUE(is_error(parse("{" + a + "[0,2]}" + b + "[3,5]}}", 5), kCorrupt, {"'b'", "belong to none"}));
  EXPECT_TRUE(parse("{" + a + "[2,4]}" + b + "[0,2]}}", 4).ok());  // in any order
  EXPECT_TRUE(is_error(parse(good, 5), kCorrupt, {"ends at byte 4", "5 bytes of data"}));
}

TEST(Case, BL107_ShardIndexProblems) {
  const auto error_of = [](const TempFolder& folder) { return open_model_file(folder.path()); };
  constexpr const char* kIndex = "model.safetensors.index.json";
  {
    const TempFolder folder = testing::tiny_llama_folder({.shards = 3});
    ASSERT_TRUE(error_of(folder).ok());
    folder.remove("model-00002-of-00003.safetensors");
    EXPECT_TRUE(is_error(error_of(folder), ErrorCode::kNotFound, {"model-00002-of-00003.safetensors", "incomplete"}));
  }
  {
    const TempFolder folder = testing::tiny_llama_folder({});
    folder.write(kIndex, R"({"weight_map":{"model.norm.weight":"model.safetensors","absent":"model.safetensors"}})");
    EXPECT_TRUE(is_error(error_of(folder), kCorrupt, {"model.safetensors: tensor 'absent' is not in it", kIndex}));
    folder.write(kIndex, R"({"weight_map":)");
    EXPECT_TRUE(is_error(error_of(folder), kCorrupt, {kIndex, "not valid JSON"}));
    for (const char* text : {R"([])", R"({})", R"({"weight_map":{}})", R"({"weight_map":[]})"}) {
      folder.write(kIndex, text);
      EXPECT_TRUE(is_error(error_of(folder), kCorrupt, {kIndex}));
    }
    for (const char* name : {R"("../model.safetensors")", R"("/etc/passwd")", R"("model.bin")", "7", "null"}) {
      folder.write(kIndex, R"({"weight_map":{"model.norm.weight":)" + std::string(name) + "}}");
      EXPECT_TRUE(is_error(error_of(folder), kCorrupt, {kIndex, "'model.norm.weight'"}));
    }
    folder.remove(kIndex);
    ASSERT_TRUE(error_of(folder).ok());
    testing::SafetensorsWriter twice;
    twice.add("model.norm.weight", "U8", std::vector<std::int64_t>{1}, std::vector<std::byte>(1));
    folder.write("model-b.safetensors", twice.bytes());
    EXPECT_TRUE(is_error(error_of(folder), kCorrupt, {"'model.norm.weight' is in", "model-b.safetensors", "too"}));
  }
  // A shard that no index names is passed over, whatever is in it.
  const TempFolder folder = testing::tiny_llama_folder({.shards = 2});
  folder.write("model-00003-of-00002.safetensors", "no safetensors");
  const Result<std::unique_ptr<ModelFile>> model = error_of(folder);
  ASSERT_TRUE(model.ok()) << model.error().message;
  ASSERT_EQ((*model)->warnings().size(), 1U);
  EXPECT_NE((*model)->warnings()[0].find("model-00003-of-00002.safetensors is in no index"), std::string::npos);
}

TEST(Case, BL109_RopeParametersWhereverConfigurationsKeepThem) {
  const std::string llama3 =
      R"("factor":8.0,"low_freq_factor":2.0,"high_freq_factor":8.0,"original_max_position_embeddings":256)";
  const std::string scaling = R"({"rope_type":"llama3",)" + llama3 + "}";
  const std::string with_theta = R"({"rope_type":"llama3","rope_theta":500000.0,)" + llama3 + "}";
  const std::string shape =
      R"("hidden_size":64,"intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,)"
      R"("head_dim":32,"vocab_size":320,"max_position_embeddings":512,"rms_norm_eps":1e-5,"tie_word_embeddings":true)";
  const auto nested = [&](const std::string& inner, const std::string& outer) {
    return R"({"model_type":"llava",)" + outer + R"("text_config":{"model_type":"llama",)" + shape + inner + "}}";
  };
  const auto flat = [&](const std::string& keys) { return R"({"model_type":"llama",)" + shape + keys + "}"; };
  const std::string configs[] = {
      flat(R"(,"rope_theta":500000.0,"rope_scaling":)" + scaling),
      flat(R"(,"rope_theta":500000.0,"rope_scaling":{"type":"llama3",)" + llama3 + "}"),
      flat(R"(,"rope_scaling":null,"rope_parameters":)" + with_theta),
      flat(R"(,"rope_theta":500000,"rope_parameters":)" + scaling),
      nested(R"(,"rope_parameters":)" + with_theta, ""),
      nested(R"(,"rope_theta":500000.0,"rope_scaling":)" + scaling,
             R"("rope_theta":1.0,"rope_scaling":{"type":"linear","factor":2},)"),
      nested("", R"("rope_theta":500000.0,"rope_scaling":)" + scaling + ","),
  };
  const RopeConfig wanted{.kind = RopeKind::kLlama3,
                          .theta = 500000.0F,
                          .factor = 8,
                          .original_context = 256,
                          .low_freq_factor = 2,
                          .high_freq_factor = 8};
  const TempFolder folder = testing::tiny_llama_folder({});
  for (const std::string& config : configs) {
    folder.write("config.json", config);
    const Result<std::unique_ptr<ModelFile>> model = open_model_file(folder.path());
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ((*model)->config().rope, wanted) << config;
  }
}

TEST(Case, BL110_EndTokensOfEveryFile) {
  const auto ends_of = [](const TempFolder& folder) {
    const Result<std::unique_ptr<ModelFile>> model = open_model_file(folder.path());
    EXPECT_TRUE(model.ok()) << model.error().message;
    return model.ok() ? (*model)->generation().end_tokens : std::vector<TokenId>();
  };
  const TempFolder only_generation = testing::tiny_llama_folder({.config = R"({"eos_token_id":null})"});
  only_generation.write("generation_config.json", R"({"eos_token_id":[7,2]})");
  EXPECT_EQ(ends_of(only_generation), (std::vector<TokenId>{TokenId{2}, TokenId{7}}));
  const TempFolder both = testing::tiny_llama_folder({.config = R"({"eos_token_id":[9,2]})"});
  both.write("generation_config.json", R"({"eos_token_id":7})");
  EXPECT_EQ(ends_of(both), (std::vector<TokenId>{TokenId{2}, TokenId{7}, TokenId{9}}));

  both.write("generation_config.json", R"({"eos_token_id":7,})");
  const Result<std::unique_ptr<ModelFile>> broken = open_model_file(both.path());
  ASSERT_TRUE(broken.ok()) << broken.error().message;
  EXPECT_EQ((*broken)->generation().end_tokens, (std::vector<TokenId>{TokenId{2}, TokenId{9}}));
  ASSERT_EQ((*broken)->warnings().size(), 1U);
  EXPECT_NE((*broken)->warnings()[0].find("generation_config.json"), std::string::npos);

  for (const char* id : {"-1", "320", "\"7\"", "1.5", "[7,320]", "18446744073709551615"}) {
    both.write("generation_config.json", R"({"eos_token_id":)" + std::string(id) + "}");
    EXPECT_TRUE(is_error(open_model_file(both.path()), kCorrupt, {"generation_config.json", "eos_token_id", "0 to 319"})) << id;
  }
}

TEST(Case, BL118_SafetensorsShapeProductsThatWrap) {
  const auto error_of = [](const std::string& shape, const std::string& offsets) {
    return parse(R"({"t":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 0);
  };
  EXPECT_TRUE(is_error(error_of("[1073741824,1073741824,16]", "[0,0]"), kCorrupt, {"'t'", "2^63"}));
  EXPECT_TRUE(is_error(error_of("[1073741824,1073741824,16,0]", "[0,0]"), kCorrupt, {"'t'", "2^63"}));
  EXPECT_TRUE(is_error(error_of("[0,1073741824,1073741824,16]", "[0,0]"), kCorrupt, {"'t'", "2^63"}));
  EXPECT_TRUE(is_error(error_of("[-1]", "[0,0]"), kCorrupt, {"'t'", "dimension -1"}));
  EXPECT_TRUE(is_error(error_of("[2147483648]", "[0,0]"), kCorrupt, {"'t'", "8589934592 bytes"}));
  EXPECT_TRUE(is_error(error_of("[18446744073709551615]", "[0,0]"), kCorrupt, {"'t'", "18446744073709551615"}));
  EXPECT_TRUE(is_error(error_of("[1.0]", "[0,0]"), kCorrupt, {"'t'", "dimension 1.0"}));
  EXPECT_TRUE(error_of("[0,5]", "[0,0]").ok());
}

}  // namespace
}  // namespace linnet
