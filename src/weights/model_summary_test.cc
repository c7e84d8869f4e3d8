#include "weights/model_summary.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weights/testing/is_error.h"
#include "weights/testing/tiny_folder.h"
#include "weights/testing/tiny_llama.h"

namespace linnet {
namespace {

using testing::GgufWriter;
using testing::is_error;
using testing::TempFile;
using testing::TempFolder;

// Of the tiny shape: embedding, norms and the nine matrices of two layers.
constexpr std::int64_t kParameters = 320 * 64 + 64 + 2 * (2 * 64 + 2 * 128 * 64 + 2 * 64 * 64 + 3 * 96 * 64);

TEST(ModelSummary, OfAGgufFile) {
  const TempFile file = testing::tiny_llama_file({});
  const Result<ModelSummary> summary = summarize_model(file.path());
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->name, "tiny llama");
  EXPECT_EQ(summary->files, 1);
  EXPECT_EQ(summary->parameters, kParameters);
  ASSERT_EQ(summary->formats.size(), 3U);
  EXPECT_EQ(summary->formats[0].format, "Q4_0");
  EXPECT_EQ(summary->formats[0].tensors, 14);
  EXPECT_EQ(summary->formats[1].format, "Q8_0");
  EXPECT_EQ(summary->formats[1].bytes, 320U * 64 / 32 * 34);
  EXPECT_EQ(summary->config->vocabulary, 320);
  EXPECT_TRUE(summary->chat_template);
  EXPECT_EQ(summary->unsupported, "");
}

TEST(ModelSummary, OfAFolder) {
  const TempFolder folder = testing::tiny_llama_folder({.bits = 4, .shards = 2});
  const Result<ModelSummary> summary = summarize_model(folder.path());
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->files, 2);
  EXPECT_EQ(summary->parameters, kParameters);
  ASSERT_EQ(summary->formats.size(), 2U);
  EXPECT_EQ(summary->formats[0].format, "affine 4-bit, groups of 32");
  EXPECT_EQ(summary->formats[0].tensors, 15);
  EXPECT_EQ(summary->formats[1].format, "BF16");
  EXPECT_EQ(summary->formats[1].bytes, 5U * 64 * 2);
}

TEST(ModelSummary, OfWhatCannotBeRunHere) {
  GgufWriter writer;
  writer.add_string("general.architecture", "gpt9");
  writer.add_raw_tensor({.name = "b", .dims = {256, 2}, .gguf_type = 17, .data = std::vector<std::byte>(100)});
  writer.add_raw_tensor({.name = "a", .dims = {4, 2, 3}, .data = std::vector<std::byte>(96)});
  const TempFile file(writer.bytes());
  const Result<ModelSummary> summary = summarize_model(file.path());
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->architecture, "gpt9");
  EXPECT_NE(summary->unsupported.find("'gpt9'"), std::string::npos);
  ASSERT_EQ(summary->tensors.size(), 2U);
  EXPECT_EQ(summary->tensors[0].shape, (std::vector<std::int64_t>{3, 2, 4}));
  EXPECT_EQ(summary->tensors[1].format, "IQ2_XS");
  EXPECT_FALSE(summary->config.has_value());

  const TempFolder folder = testing::tiny_llama_folder({.config = R"({"model_type":"gpt9"})"});
  EXPECT_EQ(summarize_model(folder.path())->architecture, "gpt9");
  EXPECT_EQ(summarize_model(folder.path())->tensors.size(), 20U);
}

TEST(ModelSummary, BrokenFilesAreErrors) {
  const TempFile text(std::as_bytes(std::span("This is no model.", 17)));
  EXPECT_TRUE(is_error(summarize_model(text.path()), ErrorCode::kCorrupt, {"not a GGUF file"}));
  const TempFolder folder = testing::tiny_llama_folder({});
  folder.write("config.json", "{");
  EXPECT_TRUE(is_error(summarize_model(folder.path()), ErrorCode::kCorrupt, {"config.json"}));
}

}  // namespace
}  // namespace linnet
