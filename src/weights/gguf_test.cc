#include "weights/gguf.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "weights/testing/gguf_writer.h"
#include "weights/testing/is_error.h"

namespace linnet {
namespace {

using testing::GgufWriter;
using testing::is_error;
using testing::TempFile;

std::vector<std::byte> pattern(std::size_t size, int from) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(from + static_cast<int>(i));
  return bytes;
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

GgufWriter small(std::uint32_t version, std::uint32_t alignment) {
  GgufWriter writer(version, alignment);
  writer.add_string("general.architecture", "test");
  writer.add_u32("b", 2);
  writer.add_u32("a", 1);
  const std::array<std::int64_t, 1> vector = {5};
  const std::array<std::int64_t, 2> matrix = {64, 3};
  writer.add_tensor("vector", vector, DType::kF32, pattern(20, 1));
  writer.add_tensor("matrix", matrix, DType::kQ8_0, pattern(204, 100));
  return writer;
}

TEST(GgufFile, ReadsBothVersionsAndAllAlignments) {
  for (const std::uint32_t version : {2U, 3U}) {
    for (const std::uint32_t alignment : {8U, 32U, 64U, 65'536U}) {
      SCOPED_TRACE(alignment);
      const std::vector<std::byte> bytes = small(version, alignment).bytes();
      const Result<GgufFile> file = GgufFile::parse(bytes, "small.gguf");
      ASSERT_TRUE(file.ok()) << file.error().message;
      EXPECT_EQ(file->version(), version);
      EXPECT_EQ(file->path(), "small.gguf");
      ASSERT_EQ(file->tensors().size(), 2U);
      const Tensor vector = file->matrix(*file->find_tensor("vector")).value();
      EXPECT_EQ(std::pair(vector.rows, vector.cols), std::pair(std::int64_t{1}, std::int64_t{5}));
      EXPECT_TRUE(same(vector.data, pattern(20, 1)));
      const Tensor matrix = file->matrix(*file->find_tensor("matrix")).value();
      EXPECT_EQ(std::pair(matrix.rows, matrix.cols), std::pair(std::int64_t{3}, std::int64_t{64}));
      EXPECT_EQ(matrix.dtype, DType::kQ8_0);
      EXPECT_TRUE(same(matrix.data, pattern(204, 100)));
    }
  }
}

TEST(GgufFile, FindsKeysAndTensorsAndKeepsTheFilesOrder) {
  const std::vector<std::byte> bytes = small(3, 32).bytes();
  const Result<GgufFile> file = GgufFile::parse(bytes, "small.gguf");
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(file->metadata().size(), 3U);
  EXPECT_EQ(file->metadata()[1].key(), "b");
  EXPECT_EQ(file->find("a")->as_int().value(), 1);
  EXPECT_EQ(file->find("b")->as_int().value(), 2);
  EXPECT_EQ(file->find(""), nullptr);
  EXPECT_EQ(file->find("c"), nullptr);
  EXPECT_EQ(file->tensors()[0].name, "vector");
  EXPECT_EQ(file->find_tensor("matri"), nullptr);
  EXPECT_EQ(file->find_tensor("zzz"), nullptr);
  EXPECT_TRUE(is_error(file->require("c"), ErrorCode::kCorrupt, {"small.gguf", "'c'", "missing"}));
}

TEST(GgufFile, OpensMappedAndSurvivesMoves) {
  const TempFile temp(small(3, 32).bytes());
  Result<GgufFile> opened = GgufFile::open(temp.path());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  GgufFile first = std::move(opened).value();
  const GgufFile file = std::move(first);
  EXPECT_TRUE(same(file.find_tensor("vector")->data, pattern(20, 1)));
  EXPECT_EQ(file.find("general.architecture")->as_string().value(), "test");
  EXPECT_TRUE(is_error(file.find("a")->as_string(), ErrorCode::kCorrupt, {temp.path()}));
  EXPECT_TRUE(is_error(GgufFile::open(temp.path() + ".absent"), ErrorCode::kNotFound, {".absent"}));
  EXPECT_TRUE(is_error(GgufFile::open(TempFile({}).path()), ErrorCode::kCorrupt, {}));
}

TEST(GgufFile, NoKeysAndNoTensors) {
  const std::vector<std::byte> bytes = GgufWriter().bytes();
  EXPECT_TRUE(GgufFile::parse(bytes, "empty.gguf").ok());
  // The padding before the data may be absent when there are none.
  EXPECT_TRUE(GgufFile::parse(std::span(bytes).first(24), "empty.gguf").ok());
  GgufWriter writer;
  writer.add_raw_tensor({.name = "t", .dims = {1}, .gguf_type = 99});
  const std::vector<std::byte> unknown = writer.bytes();
  const Result<GgufFile> file = GgufFile::parse(std::span(unknown).first(24 + 8 + 1 + 4 + 8 + 4 + 8), "unknown.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->find_tensor("t")->data.data(), nullptr);
}

TEST(GgufFile, FormatsThatAreNotSupportedMatterOnlyWhenNeeded) {
  GgufWriter writer;
  const std::array<std::int64_t, 1> dims = {4};
  writer.add_raw_tensor({.name = "iq", .dims = {256}, .gguf_type = 17, .data = pattern(74, 0)});
  writer.add_raw_tensor({.name = "new", .dims = {3, 3}, .gguf_type = 4711, .data = pattern(9, 0)});
  writer.add_tensor("plain", dims, DType::kF32, pattern(16, 0));
  const std::vector<std::byte> bytes = writer.bytes();
  const Result<GgufFile> file = GgufFile::parse(bytes, "mixed.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->matrix(*file->find_tensor("plain")).ok());
  EXPECT_TRUE(
      is_error(file->matrix(*file->find_tensor("iq")), ErrorCode::kUnsupported, {"mixed.gguf", "'iq'", "IQ2_XS", "Q4_0"}));
  EXPECT_TRUE(is_error(file->matrix(*file->find_tensor("new")), ErrorCode::kUnsupported, {"'new'", "type 4711"}));
}

TEST(GgufFile, MatricesHaveTwoDimensions) {
  GgufWriter writer;
  const std::array<std::int64_t, 3> deep = {2, 2, 2};
  const std::array<std::int64_t, 4> flat = {2, 4, 1, 1};
  writer.add_tensor("deep", deep, DType::kF32, pattern(32, 0));
  writer.add_tensor("flat", flat, DType::kF32, pattern(32, 0));
  const std::vector<std::byte> bytes = writer.bytes();
  const Result<GgufFile> file = GgufFile::parse(bytes, "deep.gguf");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(is_error(file->matrix(*file->find_tensor("deep")), ErrorCode::kUnsupported, {"'deep'", "3 dimensions"}));
  EXPECT_EQ(file->matrix(*file->find_tensor("flat")).value().rows, 4);
}

TEST(GgufTensorType, HasAName) {
  EXPECT_EQ(gguf_tensor_type_text(2), "Q4_0");
  EXPECT_EQ(gguf_tensor_type_text(20), "IQ4_NL");
  EXPECT_EQ(gguf_tensor_type_text(77), "type 77");
}

}  // namespace
}  // namespace linnet
