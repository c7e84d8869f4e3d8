#include "weights/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "weights/testing/gguf_writer.h"
#include "weights/testing/is_error.h"

namespace linnet {
namespace {

using testing::GgufWriter;
using testing::is_error;

GgufWriter base() {
  GgufWriter writer;
  const std::vector<std::string> tokens = {"<s>", "a", "b", "ab"};
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  return writer;
}

TEST(GgufVocabulary, ReadsAll) {
  GgufWriter writer = base();
  const std::int32_t types[] = {3, 1, 1, 6};
  const float scores[] = {0, -1, -2, std::numeric_limits<float>::infinity()};
  const std::vector<std::string> merges = {"a b", " b"};
  writer.add_string("tokenizer.ggml.pre", "smollm");
  writer.add_numbers("tokenizer.ggml.token_type", GgufType::kInt32, types);
  writer.add_numbers("tokenizer.ggml.scores", GgufType::kFloat32, scores);
  writer.add_strings("tokenizer.ggml.merges", std::span(merges).first(1));
  writer.add_u32("tokenizer.ggml.bos_token_id", 0);
  writer.add_u8("tokenizer.ggml.eos_token_id", 3);
  writer.add_u64("tokenizer.ggml.eot_token_id", 2);
  writer.add_bool("tokenizer.ggml.add_bos_token", true);
  writer.add_bool("tokenizer.ggml.add_space_prefix", false);
  const std::vector<std::byte> bytes = writer.bytes();
  const GgufFile file = GgufFile::parse(bytes, "v.gguf").value();
  const Result<GgufVocabulary> vocabulary = read_gguf_vocabulary(file);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_EQ(vocabulary->pre, "smollm");
  EXPECT_EQ(vocabulary->tokens.size(), 4U);
  EXPECT_EQ((*vocabulary->types)[3], 6);
  EXPECT_EQ((*vocabulary->scores)[2], -2);
  EXPECT_EQ(*vocabulary->merges.begin(), "a b");
  EXPECT_EQ(vocabulary->bos, TokenId{0});
  EXPECT_EQ(vocabulary->eos, TokenId{3});
  EXPECT_EQ(vocabulary->eot, TokenId{2});
  EXPECT_EQ(vocabulary->unk, std::nullopt);
  EXPECT_EQ(vocabulary->add_bos, true);
  EXPECT_EQ(vocabulary->add_eos, std::nullopt);
  EXPECT_EQ(vocabulary->add_space_prefix, false);
}

TEST(GgufVocabulary, RefusesByNameAndValue) {
  struct Case {
    std::function<void(GgufWriter&)> add;
    std::initializer_list<std::string_view> parts;
  };
  const std::uint8_t bad_types[] = {1, 1, 7, 1};
  const std::int32_t zero_types[] = {1, 0, 1, 1};
  const double nan_scores[] = {0, 0, 0, std::numeric_limits<double>::quiet_NaN()};
  const std::vector<std::string> no_second = {"a "};
  const std::vector<std::string> no_first = {" "};
  const std::vector<std::string> empty = {"a b", ""};
  const Case cases[] = {
      {[&](GgufWriter& w) { w.add_numbers("tokenizer.ggml.token_type", GgufType::kUint8, bad_types); },
       {"token_type", "7", "index 2"}},
      {[&](GgufWriter& w) { w.add_numbers("tokenizer.ggml.token_type", GgufType::kInt32, zero_types); },
       {"token_type", "0", "index 1"}},
      {[&](GgufWriter& w) { w.add_numbers("tokenizer.ggml.token_type", GgufType::kInt32, std::span(zero_types).first(3)); },
       {"token_type", "3 elements"}},
      {[&](GgufWriter& w) { w.add_numbers("tokenizer.ggml.scores", GgufType::kFloat64, nan_scores); },
       {"scores", "NaN at index 3"}},
      {[&](GgufWriter& w) { w.add_strings("tokenizer.ggml.merges", no_second); }, {"merges", "'a '", "index 0"}},
      {[&](GgufWriter& w) { w.add_strings("tokenizer.ggml.merges", no_first); }, {"merges", "' '", "index 0"}},
      {[&](GgufWriter& w) { w.add_strings("tokenizer.ggml.merges", empty); }, {"merges", "''", "index 1"}},
      {[&](GgufWriter& w) { w.add_u32("tokenizer.ggml.merges", 1); }, {"merges", "u32"}},
      {[&](GgufWriter& w) { w.add_u32("tokenizer.ggml.bos_token_id", 4); }, {"bos_token_id", "is 4", "4 tokens"}},
      {[&](GgufWriter& w) { w.add_i32("tokenizer.ggml.eos_token_id", -1); }, {"eos_token_id", "is -1"}},
      {[&](GgufWriter& w) { w.add_string("tokenizer.ggml.eom_token_id", "x"); }, {"eom_token_id", "string"}},
      {[&](GgufWriter& w) { w.add_u8("tokenizer.ggml.add_eos_token", 1); }, {"add_eos_token", "u8"}},
      {[&](GgufWriter& w) { w.add_u8("tokenizer.ggml.pre", 1); }, {"tokenizer.ggml.pre", "u8"}},
  };
  for (const Case& c : cases) {
    GgufWriter writer = base();
    c.add(writer);
    const std::vector<std::byte> bytes = writer.bytes();
    const GgufFile file = GgufFile::parse(bytes, "v.gguf").value();
    EXPECT_TRUE(is_error(read_gguf_vocabulary(file), ErrorCode::kCorrupt, c.parts)) << *c.parts.begin();
  }
}

TEST(GgufVocabulary, NeedsModelAndTokens) {
  GgufWriter no_tokens;
  no_tokens.add_string("tokenizer.ggml.model", "gpt2");
  GgufWriter empty;
  empty.add_string("tokenizer.ggml.model", "gpt2");
  empty.add_strings("tokenizer.ggml.tokens", {});
  const std::vector<std::byte> nothing = GgufWriter().bytes();
  const std::vector<std::byte> without = no_tokens.bytes();
  const std::vector<std::byte> none = empty.bytes();
  EXPECT_TRUE(is_error(read_gguf_vocabulary(*GgufFile::parse(nothing, "v")), ErrorCode::kCorrupt, {"'tokenizer.ggml.model'"}));
  EXPECT_TRUE(is_error(read_gguf_vocabulary(*GgufFile::parse(without, "v")), ErrorCode::kCorrupt, {"'tokenizer.ggml.tokens'"}));
  EXPECT_TRUE(
      is_error(read_gguf_vocabulary(*GgufFile::parse(none, "v")), ErrorCode::kCorrupt, {"'tokenizer.ggml.tokens'", "0 tokens"}));
}

}  // namespace
}  // namespace linnet
