// Models split over several GGUF files.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/temp_folder.h"
#include "weights/model_file.h"
#include "weights/testing/gguf_writer.h"
#include "weights/testing/is_error.h"
#include "weights/testing/tiny_llama.h"

namespace linnet {
namespace {

using testing::GgufWriter;
using testing::is_error;
using testing::TempFolder;

constexpr std::string_view kFirst = "m-00001-of-00002.gguf";
constexpr std::string_view kSecond = "m-00002-of-00002.gguf";

void add_split(GgufWriter& writer, std::uint16_t part, std::uint16_t count, std::int32_t tensors) {
  writer.add_number("split.no", GgufType::kUint16, part);
  writer.add_number("split.count", GgufType::kUint16, count);
  writer.add_i32("split.tensors.count", tensors);
}

// The tiny llama in the first file; a bias more in the second.
struct Split {
  GgufWriter first = testing::tiny_llama_writer({.tied = true});
  GgufWriter second;
  std::vector<std::byte> bias = std::vector<std::byte>(128 * 4);

  void add_bias(GgufWriter& writer) { writer.add_raw_tensor({.name = "blk.1.attn_q.bias", .dims = {128}, .data = bias}); }
  TempFolder write() const {
    TempFolder folder;
    folder.write(kFirst, first.bytes());
    folder.write(kSecond, second.bytes());
    return folder;
  }
};

Result<std::unique_ptr<ModelFile>> open(const TempFolder& folder, std::string_view name = kFirst) {
  return open_model_file(folder.path() + "/" + std::string(name));
}

TEST(GgufSplit, TensorsComeFromEveryPart) {
  Split split;
  add_split(split.first, 0, 2, 21);
  add_split(split.second, 1, 2, 21);
  split.add_bias(split.second);
  const TempFolder folder = split.write();
  const Result<std::unique_ptr<ModelFile>> model = open(folder);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ((*model)->files(), 2);
  EXPECT_TRUE((*model)->config().attention_bias);
  EXPECT_TRUE((*model)->require("model.layers.1.self_attn.q_proj.bias", 1, 128).ok());
  EXPECT_TRUE((*model)->require("model.norm.weight", 1, 64).ok());
  EXPECT_TRUE(is_error(open(folder, kSecond), ErrorCode::kUnsupported, {"one of 2 files", "-00001-of-00002.gguf"}));
  folder.remove(kSecond);
  EXPECT_TRUE(is_error(open(folder), ErrorCode::kNotFound, {kSecond}));
}

TEST(GgufSplit, PartsThatContradictEachOtherAreRefused) {
  struct Case {
    std::uint16_t part;
    std::uint16_t count;
    std::int32_t tensors;
    bool twice;
    std::initializer_list<std::string_view> parts;
  };
  const Case cases[] = {
      {0, 2, 21, false, {kSecond, "part 0 of 2", "part 1 of 2 is wanted"}},
      {1, 3, 21, false, {kSecond, "part 1 of 3"}},
      {1, 2, 22, false, {"split.tensors.count", "22", "21 tensors"}},
      {1, 2, 22, true, {kSecond, "'blk.1.attn_q.bias'", "earlier part"}},
  };
  for (const Case& c : cases) {
    Split split;
    add_split(split.first, 0, 2, c.tensors);
    add_split(split.second, c.part, c.count, c.tensors);
    split.add_bias(split.second);
    if (c.twice) split.add_bias(split.first);
    EXPECT_TRUE(is_error(open(split.write()), ErrorCode::kCorrupt, c.parts)) << *c.parts.begin();
  }
}

}  // namespace
}  // namespace linnet
