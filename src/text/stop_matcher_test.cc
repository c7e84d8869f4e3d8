#include "text/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {
namespace {

struct Oracle {
  std::size_t sent = 0;  // bytes of the text that may have been sent
  bool matched = false;
};

// The definition, by trying everything.
Oracle oracle(const std::vector<std::string>& stops, std::string_view text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (!stop.empty() && text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {.sent = end - longest, .matched = true};
  }
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    for (const std::string& stop : stops) {
      const std::string_view tail = text.substr(begin);
      if (tail.size() < stop.size() && std::string_view(stop).starts_with(tail)) return {.sent = begin, .matched = false};
    }
  }
  return {.sent = text.size(), .matched = false};
}

// BL-004, BL-005.
TEST(StopMatcher, StopAcrossPieces) {
  StopMatcher matcher({"beta gamma"});
  EXPECT_EQ(matcher.push("alpha"), (StopMatch{.text = "alpha", .matched = false}));
  EXPECT_EQ(matcher.push(" beta"), (StopMatch{.text = " ", .matched = false}));
  EXPECT_EQ(matcher.push(" gam"), (StopMatch{.text = "", .matched = false}));
  EXPECT_EQ(matcher.push("ma delta"), (StopMatch{.text = "", .matched = true, .stop = "beta gamma"}));
}

TEST(StopMatcher, HeldTextIsReleasedAtOnce) {
  StopMatcher matcher({"own fox"});
  EXPECT_EQ(matcher.push("The quick br").text, "The quick br");
  EXPECT_EQ(matcher.push("own").text, "");
  EXPECT_EQ(matcher.push(" cat").text, "own cat");
  EXPECT_EQ(matcher.push(" o").text, " ");
  EXPECT_EQ(matcher.finish(), "o");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, FirstCompleteMatchWins) {
  const struct {
    std::vector<std::string> stops;
    std::string text;
    std::string sent;
    bool matched;
  } cases[] = {
      {{}, "abc", "abc", false},          {{""}, "abc", "abc", false},
      {{"c"}, "abc", "ab", true},         {{"abcd", "bc"}, "xabcd", "xa", true},  // "bc" is complete first
      {{"c", "abc"}, "xabc", "x", true},                                          // both at once: the one that begins first
      {{"aab"}, "aaab", "a", true},       {{"abab", "ba"}, "abab", "a", true},
      {{"ab", "ab"}, "ab", "", true},     {{"\n\n", "\n"}, "a\n", "a", true},
      {{"é"}, "caf\u00e9!", "caf", true}, {{std::string("\0a", 2)}, std::string("x\0a", 3), "x", true},
  };
  for (const auto& one : cases) {
    StopMatcher matcher(one.stops);
    StopMatch match = matcher.push(one.text);
    if (!match.matched) match.text += matcher.finish();
    EXPECT_EQ(match.text, one.sent) << one.text;
    EXPECT_EQ(match.matched, one.matched) << one.text;
    EXPECT_EQ(match.stop.empty(), !one.matched) << one.text;
    EXPECT_TRUE(one.text.starts_with(match.text + match.stop)) << one.text;
  }
}

TEST(StopMatcher, EqualsTheOracleUnderEverySplit) {
  std::mt19937 random(5);
  for (int round = 0; round < 4000; ++round) {
    const auto word = [&](std::size_t most) {
      std::string text(random() % (most + 1), 'a');
      for (char& c : text) c = static_cast<char>('a' + random() % 2);
      return text;
    };
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = word(5);
    const std::string text = word(14);
    StopMatcher matcher(stops);
    std::string sent;
    std::string seen;
    bool matched = false;
    for (std::size_t at = 0; at < text.size() && !matched;) {
      const std::string piece = text.substr(at, random() % 4);
      at += piece.size();
      seen += piece;
      const StopMatch match = matcher.push(piece);
      sent += match.text;
      matched = match.matched;
      const Oracle want = oracle(stops, seen);
      ASSERT_EQ(matched, want.matched) << seen;
      ASSERT_EQ(sent, seen.substr(0, want.sent));
      if (matched) {
        ASSERT_NE(std::find(stops.begin(), stops.end(), match.stop), stops.end()) << seen;
        ASSERT_TRUE(seen.starts_with(sent + match.stop)) << seen;
      }
    }
    if (!matched) {
      ASSERT_EQ(sent + matcher.finish(), text);
    }
  }
}

TEST(StopMatcher, TakesTimeLinearInTheText) {
  const std::string stop(5000, 'a');
  StopMatcher matcher({stop + "b", stop + "c"});
  std::string sent;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) sent += matcher.push(std::string(1000, 'a')).text;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(sent.size(), 1'000'000U - 5000U);
}

}  // namespace
}  // namespace linnet
