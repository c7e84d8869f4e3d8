#include "api/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace linnet::api {
namespace {

TEST(JsonText, EqualsTheLibraryOnEveryAsciiCharacter) {
  for (int c = 0; c < 0x7f; ++c) {
    const std::string text = "a" + std::string(1, static_cast<char>(c)) + "b";
    EXPECT_EQ(json_string(text), nlohmann::json(text).dump()) << c;
  }
}

TEST(JsonText, EqualsTheLibraryOnRandomText) {
  const std::string pieces[] = {"\"", "\\", "\n", "\x01", "a", "xyz", "é", "日本", "😀", "\u2028", "\x7f", ""};
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random() % 12; i > 0; --i) text += pieces[random() % std::size(pieces)];
    ASSERT_EQ(json_string(text), nlohmann::json(text).dump());
  }
}

}  // namespace
}  // namespace linnet::api
