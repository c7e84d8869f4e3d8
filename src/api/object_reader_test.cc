#include "api/object_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace linnet::api {
namespace {

TEST(ObjectReader, Integers) {
  struct Row {
    const char* json;
    std::optional<std::int64_t> value;  // absent: an error
  };
  const Row rows[] = {
      {"5", 5},
      {"-3", -3},
      {"10", 10},
      {"5.0", 5},
      {"1e1", 10},
      {"1.5", std::nullopt},
      {"11", std::nullopt},
      {"-4", std::nullopt},
      {"\"5\"", std::nullopt},
      {"true", std::nullopt},
      {"[5]", std::nullopt},
      {"18446744073709551615", std::nullopt},
      {"1e300", std::nullopt},
      {"-1e300", std::nullopt},
  };
  for (const Row& row : rows) {
    const Json object = {{"f", Json::parse(row.json)}};
    ObjectReader reader(object, "outer");
    const auto value = reader.integer("f", {.min = -3, .max = 10});
    EXPECT_EQ(value.ok(), row.value.has_value()) << row.json;
    if (value.ok()) {
      EXPECT_EQ(*value, row.value) << row.json;
    } else {
      EXPECT_EQ(value.error().param, "outer.f");
      EXPECT_NE(value.error().message.find("outer.f must be an integer from -3 to 10, not "), std::string::npos);
    }
  }
}

TEST(ObjectReader, NumbersRespectOpenEnds) {
  const auto reads = [](const char* json, const NumberRange& range) {
    const Json object = {{"f", Json::parse(json)}};
    ObjectReader reader(object, {});
    return reader.number("f", range).ok();
  };
  const NumberRange above_zero{.min = 0, .max = 1, .min_allowed = false};
  EXPECT_FALSE(reads("0", above_zero));
  EXPECT_TRUE(reads("1e-9", above_zero));
  EXPECT_TRUE(reads("1", above_zero));
  EXPECT_FALSE(reads("1.0001", above_zero));
  const NumberRange below_one{.min = 0, .max = 1, .max_allowed = false};
  EXPECT_TRUE(reads("0", below_one));
  EXPECT_FALSE(reads("1", below_one));
  EXPECT_FALSE(reads("\"0.5\"", below_one));
}

TEST(ObjectReader, NullIsAbsent) {
  const Json object = {{"a", nullptr}};
  ObjectReader reader(object, {});
  EXPECT_EQ(*reader.boolean("a"), std::nullopt);
  EXPECT_EQ(*reader.string("a"), std::nullopt);
  EXPECT_EQ(*reader.string("b"), std::nullopt);
}

TEST(ObjectReader, UnknownIsWhatNobodyAskedFor) {
  const Json object = {{"a", 1}, {"b", 2}, {"c", nullptr}, {"d", 4}};
  ObjectReader reader(object, "o");
  (void)reader.find("a");
  reader.accept("d");
  EXPECT_EQ(reader.unknown(), (std::vector<std::string>{"o.b", "o.c"}));
}

TEST(ObjectReader, ErrorsShowValuesShort) {
  const Json long_text = std::string(39, 'x') + "日本語";
  EXPECT_EQ(describe(long_text), "\"" + std::string(39, 'x') + "...\"");
  EXPECT_EQ(describe(Json("a\"b")), R"("a\"b")");
  EXPECT_EQ(describe(Json::parse("[1,2]")), "an array");
  EXPECT_EQ(describe(Json::parse("1.5")), "1.5");
}

}  // namespace
}  // namespace linnet::api
