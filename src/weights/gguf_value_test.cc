#include "weights/gguf_value.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "weights/gguf.h"
#include "weights/testing/gguf_writer.h"
#include "weights/testing/is_error.h"

namespace linnet {
namespace {

using testing::GgufWriter;
using testing::is_error;

// A parsed file that keeps its bytes.
struct Parsed {
  explicit Parsed(const GgufWriter& writer) : bytes(writer.bytes()), file(GgufFile::parse(bytes, "test.gguf").value()) {}
  const GgufValue& operator[](std::string_view key) const { return *file.find(key); }
  std::vector<std::byte> bytes;
  GgufFile file;
};

template <class T>
void expect_extremes(GgufType type) {
  GgufWriter writer;
  const T values[] = {std::numeric_limits<T>::min(), T{7}, std::numeric_limits<T>::max()};
  writer.add_number("low", type, values[0]);
  writer.add_number("high", type, values[2]);
  writer.add_numbers("all", type, values);
  const Parsed parsed(writer);
  EXPECT_EQ(parsed["low"].as_int().value(), static_cast<std::int64_t>(values[0]));
  EXPECT_EQ(parsed["high"].as_int().value(), static_cast<std::int64_t>(values[2]));
  EXPECT_EQ(parsed["low"].as_float().value(), static_cast<double>(values[0]));
  const GgufInts ints = parsed["all"].as_ints().value();
  ASSERT_EQ(ints.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(ints[i], static_cast<std::int64_t>(values[i]));
  EXPECT_TRUE(is_error(parsed["low"].as_bool(), ErrorCode::kCorrupt, {"test.gguf", "'low'", gguf_type_name(type), "bool"}));
  EXPECT_TRUE(is_error(parsed["all"].as_int(), ErrorCode::kCorrupt, {"'all'", "array of", "an integer"}));
  EXPECT_TRUE(is_error(parsed["all"].as_floats(), ErrorCode::kCorrupt, {"'all'", "array of f32 or f64"}));
}

TEST(GgufValue, IntegersOfAllWidths) {
  expect_extremes<std::uint8_t>(GgufType::kUint8);
  expect_extremes<std::int8_t>(GgufType::kInt8);
  expect_extremes<std::uint16_t>(GgufType::kUint16);
  expect_extremes<std::int16_t>(GgufType::kInt16);
  expect_extremes<std::uint32_t>(GgufType::kUint32);
  expect_extremes<std::int32_t>(GgufType::kInt32);
  expect_extremes<std::int64_t>(GgufType::kInt64);
}

TEST(GgufValue, UnsignedBeyondInt64IsRefused) {
  GgufWriter writer;
  const std::uint64_t values[] = {1, std::uint64_t{1} << 63U};
  writer.add_u64("fits", values[1] - 1);
  writer.add_u64("large", values[1]);
  writer.add_numbers("array", GgufType::kUint64, values);
  const Parsed parsed(writer);
  EXPECT_EQ(parsed["fits"].as_int().value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(is_error(parsed["large"].as_int(), ErrorCode::kCorrupt, {"'large'", "9223372036854775808"}));
  EXPECT_TRUE(is_error(parsed["large"].as_float(), ErrorCode::kCorrupt, {"'large'"}));
  EXPECT_TRUE(is_error(parsed["array"].as_ints(), ErrorCode::kCorrupt, {"'array'", "index 1", "9223372036854775808"}));
}

TEST(GgufValue, Floats) {
  GgufWriter writer;
  const float narrow[] = {1.5F, -0.0F};
  const double wide[] = {1e300, 0.1};
  writer.add_f32("narrow", 2.5F);
  writer.add_number("wide", GgufType::kFloat64, 0.1);
  writer.add_numbers("narrows", GgufType::kFloat32, narrow);
  writer.add_numbers("wides", GgufType::kFloat64, wide);
  const Parsed parsed(writer);
  EXPECT_EQ(parsed["narrow"].as_float().value(), 2.5);
  EXPECT_EQ(parsed["wide"].as_float().value(), 0.1);
  EXPECT_EQ(parsed["narrows"].as_floats().value()[0], 1.5);
  EXPECT_EQ(parsed["wides"].as_floats().value()[0], 1e300);
  EXPECT_TRUE(is_error(parsed["narrow"].as_int(), ErrorCode::kCorrupt, {"'narrow'", "f32"}));
  EXPECT_TRUE(is_error(parsed["wides"].as_ints(), ErrorCode::kCorrupt, {"'wides'", "array of f64"}));
}

TEST(GgufValue, Bools) {
  GgufWriter writer;
  writer.add_bool("yes", true);
  writer.add_bool("no", false);
  writer.add_number("two", GgufType::kBool, std::uint8_t{2});
  const Parsed parsed(writer);
  EXPECT_TRUE(parsed["yes"].as_bool().value());
  EXPECT_FALSE(parsed["no"].as_bool().value());
  EXPECT_TRUE(is_error(parsed["two"].as_bool(), ErrorCode::kCorrupt, {"'two'", "value 2", "0 or 1"}));
  EXPECT_TRUE(is_error(parsed["yes"].as_int(), ErrorCode::kCorrupt, {"'yes'", "of type bool"}));
}

TEST(GgufValue, Strings) {
  GgufWriter writer;
  const std::vector<std::string> values = {"", std::string("a\0b", 3), "\xFF\xFE", std::string(300, 'x')};
  writer.add_string("one", values[1]);
  writer.add_string("empty", "");
  writer.add_strings("all", values);
  writer.add_strings("none", {});
  const Parsed parsed(writer);
  EXPECT_EQ(parsed["one"].as_string().value(), values[1]);
  EXPECT_EQ(parsed["empty"].as_string().value(), "");
  const GgufStrings strings = parsed["all"].as_strings().value();
  EXPECT_EQ(strings.size(), values.size());
  EXPECT_EQ(std::vector<std::string>(strings.begin(), strings.end()), values);
  EXPECT_EQ(parsed["none"].as_strings().value().size(), 0U);
  EXPECT_EQ(parsed["none"].as_strings().value().begin(), parsed["none"].as_strings().value().end());
  EXPECT_TRUE(is_error(parsed["one"].as_float(), ErrorCode::kCorrupt, {"'one'", "is of type string", "a number"}));
  EXPECT_TRUE(is_error(parsed["one"].as_strings(), ErrorCode::kCorrupt, {"'one'", "is of type string"}));
  EXPECT_TRUE(is_error(parsed["all"].as_string(), ErrorCode::kCorrupt, {"'all'", "array of string"}));
}

TEST(GgufValue, NamesInMessagesArePrintable) {
  GgufWriter writer;
  writer.add_u8("\x1B[31m'\\\n" + std::string(100, 'k'), 1);
  const Parsed parsed(writer);
  const Result<bool> value = parsed.file.metadata()[0].as_bool();
  EXPECT_TRUE(is_error(value, ErrorCode::kCorrupt, {R"('\x1b[31m\x27\x5c\x0akkk)", "k...'"}));
}

}  // namespace
}  // namespace linnet
