#include "text/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "text/utf8_oracle.h"

namespace linnet {
namespace {

std::string in_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts) {
  Utf8Stream stream;
  std::string out;
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    stream.push(bytes.substr(begin, cut - begin), out);
    begin = cut;
  }
  stream.push(bytes.substr(begin), out);
  stream.finish(out);
  return out;
}

TEST(Utf8Stream, ReplacesMaximalBrokenParts) {
  const struct {
    std::string_view bytes;
    std::string_view text;
  } cases[] = {
      {"", ""},
      {"plain", "plain"},
      {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
      {"\xF0\x9F\x98", "\uFFFD"},
      {"\xF0\x9F\x98x", "\uFFFDx"},
      {"\xF0\x9F\xF0\x9F\x98\x80", "\uFFFD\xF0\x9F\x98\x80"},
      {"\x80\x80", "\uFFFD\uFFFD"},
      {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong
      {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},            // overlong
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xF5\xFF", "\uFFFD\uFFFD"},
      {"\xE4\xBD\xE4\xBD\xA0", "\uFFFD\u4F60"},
      {std::string_view("a\0b", 3), std::string_view("a\0b", 3)},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(in_pieces(bytes, {}), text);
    EXPECT_EQ(test::lossy_utf8(bytes), text);
  }
}

TEST(Utf8Stream, EqualsTheOracleUnderEverySplit) {
  std::mt19937 random(7);
  const std::string_view interesting("\x00\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC2\xDF\xE0\xE1\xED\xEE\xEF\xF0\xF1\xF4\xF5\xFF",
                                     22);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes(1 + random() % 9, '\0');
    for (char& byte : bytes) byte = interesting[random() % interesting.size()];
    const std::string want = test::lossy_utf8(bytes);
    EXPECT_EQ(in_pieces(bytes, {}), want);
    for (std::size_t a = 0; a <= bytes.size(); ++a) {
      for (std::size_t b = a; b <= bytes.size(); ++b) ASSERT_EQ(in_pieces(bytes, {a, b}), want);
    }
  }
}

TEST(Utf8Stream, HoldsNothingButTheBeginningOfACharacter) {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    Utf8Stream stream;
    std::string out;
    for (int i = 0; i < 12; ++i) {
      bytes.push_back(static_cast<char>(random() % 2 == 0 ? random() % 256 : 0x80 + random() % 0x40));
      stream.push(bytes.substr(bytes.size() - 1), out);
      ASSERT_EQ(out, test::lossy_utf8(test::without_incomplete_tail(bytes)));
    }
  }
}

}  // namespace
}  // namespace linnet
