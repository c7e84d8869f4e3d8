#include "json/read_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace linnet {
namespace {

TEST(JsonReader, ReadsWhatTheLibraryReads) {
  const char* texts[] = {
      "null",
      "true",
      "0",
      "-1",
      "18446744073709551615",
      "1.5e3",
      "\"\"",
      "\"\\u00e9\\ud83d\\ude00\\n\"",
      "[]",
      "{}",
      "[[],{},[1,[2]]]",
      R"({"b":1,"a":[{"c":null},{"d":false}],"":"x"})",
      " \t\r\n[1 , 2]\n",
  };
  for (const char* text : texts) {
    const Result<Json> json = read_json(text);
    ASSERT_TRUE(json.ok()) << text << json.error().message;
    EXPECT_EQ(json->dump(), Json::parse(text).dump()) << text;
  }
}

TEST(JsonReader, RandomDocumentsSurvive) {
  std::mt19937 random(5);
  const std::function<Json(int)> make = [&](int depth) -> Json {
    switch (random() % (depth > 5 ? 4 : 6)) {
      case 0:
        return nullptr;
      case 1:
        return static_cast<std::int64_t>(random()) - 2'000'000'000;
      case 2:
        return std::string(random() % 5, 'q');
      case 3:
        return static_cast<double>(random()) / 7;
      case 4: {
        Json array = Json::array();
        for (std::size_t i = random() % 4; i > 0; --i) array.push_back(make(depth + 1));
        return array;
      }
      default: {
        Json object = Json::object();
        for (std::size_t i = random() % 4; i > 0; --i) object["k" + std::to_string(random() % 50)] = make(depth + 1);
        return object;
      }
    }
  };
  for (int round = 0; round < 500; ++round) {
    const std::string text = make(0).dump();
    const Result<Json> json = read_json(text);
    ASSERT_TRUE(json.ok()) << text;
    ASSERT_EQ(json->dump(), text);
  }
}

TEST(JsonReader, BrokenTextIsAnErrorThatDoesNotRepeatIt) {
  const std::string texts[] = {
      "",
      "{",
      "[",
      "]",
      "{\"a\"}",
      "{\"a\":}",
      "[1,]",
      "{a:1}",
      "nul",
      "01",
      "1e999",
      "+1",
      "'a'",
      "\"a",
      "[1] x",
      "{}{}",
      "\"\\x\"",
      "\"\\ud83d\"",
      "\"\\ud83d \"",
      "\"\\ude00\"",
      "\"\\ud83d\\ud83d\"",
      "\"a\xff\"",
      "\"\xc3\"",
      "\"\xed\xa0\x80\"",
      "\"\xf5\x80\x80\x80\"",
      "\xff",
      "\"\n\"",
      std::string("\"\0\"", 3),
      "NaN",
      "Infinity",
      "// c\n1",
  };
  for (const std::string& text : texts) {
    const Result<Json> json = read_json(text);
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.error().code, ErrorCode::kInvalidArgument);
    for (const char c : json.error().message) EXPECT_TRUE(c >= ' ' && c <= '~') << text;
  }
  EXPECT_NE(read_json("[1,}").error().message.find("byte 4"), std::string::npos);
}

TEST(JsonReader, EveryCutOfADocumentIsAnError) {
  const std::string text = R"({"messages":[{"role":"user","content":"h\u00e9 \"x\""}],"temperature":0.5,"stop":["a",null,true]})";
  for (std::size_t cut = 0; cut < text.size(); ++cut) EXPECT_FALSE(read_json(text.substr(0, cut)).ok()) << cut;
  EXPECT_TRUE(read_json(text).ok());
}

TEST(JsonReader, DepthIsBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(read_json(nested(64)).ok());
  const Result<Json> deep = read_json(nested(65));
  ASSERT_FALSE(deep.ok());
  EXPECT_NE(deep.error().message.find("64"), std::string::npos);
  EXPECT_FALSE(read_json(std::string(20'000'000, '[')).ok());
  std::string objects;
  for (int i = 0; i < 100; ++i) objects += "{\"a\":";
  EXPECT_FALSE(read_json(objects).ok());
}

TEST(JsonReader, ElementsAndKeysAreBounded) {
  const JsonLimits limits{.depth_max = 8, .elements_max = 5, .object_keys_max = 2};
  EXPECT_TRUE(read_json("[1,2,3,4]", limits).ok());
  EXPECT_EQ(read_json("[1,2,3,4,5]", limits).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(read_json("[[],[],[],[],[]]", limits).error().code, ErrorCode::kTooLarge);
  EXPECT_TRUE(read_json(R"({"a":1,"b":2})", limits).ok());
  EXPECT_EQ(read_json(R"({"a":1,"b":2,"c":3})", limits).error().code, ErrorCode::kTooLarge);
}

TEST(JsonReader, EqualKeysAreAnErrorThatNamesThem) {
  const Result<Json> json = read_json(R"({"a":{"x":1,"y":2,"x":3}})");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error().param, "x");
  EXPECT_TRUE(read_json(R"([{"x":1},{"x":2}])").ok());
}

// Quadratic work for each object would take minutes.
TEST(JsonReader, FullObjectsAreCheap) {
  std::string text = "[";
  for (int object = 0; object < 20; ++object) {
    text += object == 0 ? "{" : ",{";
    for (int key = 0; key < 10'000; ++key) text += (key == 0 ? "\"" : ",\"") + std::to_string(key) + "\":0";
    text += "}";
  }
  EXPECT_TRUE(read_json(text + "]").ok());
}

TEST(JsonReader, TheWidestDocumentIsTakenAndNoWiderOne) {
  std::string text = "[0";
  for (std::size_t i = 2; i < JsonLimits{}.elements_max; ++i) text += ",0";
  EXPECT_TRUE(read_json(text + "]").ok());
  EXPECT_EQ(read_json(text + ",0]").error().code, ErrorCode::kTooLarge);
}

TEST(JsonReader, AZeroByteIsNoEnd) {
  using namespace std::string_literals;
  for (const std::string& text : {"\0"s, "{}\0"s, "{}\0garbage"s, "[\"a\0\"]"s}) {
    const Result<Json> json = read_json(text);
    ASSERT_FALSE(json.ok());
    EXPECT_NE(json.error().message.find("at byte " + std::to_string(text.find('\0') + 1)), std::string::npos);
  }
}

}  // namespace
}  // namespace linnet
