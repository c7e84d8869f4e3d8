#include "speculation/ngram_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

namespace linnet {
namespace {

using Tokens = std::vector<TokenId>;

// A letter is a token.
Tokens tokens(const std::string& text) {
  Tokens result;
  for (const char c : text) result.push_back(TokenId{c});
  return result;
}

std::string proposed(NgramSource& source, const Tokens& history, std::size_t count) {
  Tokens into(count);
  std::string text;
  into.resize(source.propose(history, into));
  for (const TokenId token : into) text += static_cast<char>(token);
  return text;
}

std::string proposed(const std::string& history, std::size_t count = 5) {
  NgramSource source(1000);
  return proposed(source, tokens(history), count);
}

// What follows the latest earlier occurrence of the longest gram, by trying every place.
Tokens naive(const Tokens& history, std::size_t count) {
  for (std::size_t size = std::min(NgramSource::kGramMax, history.size()); size >= NgramSource::kGramMin; --size) {
    for (std::size_t next = history.size() - 1; next >= size; --next) {
      const auto begin = history.begin() + static_cast<std::ptrdiff_t>(next - size);
      if (!std::equal(begin, begin + static_cast<std::ptrdiff_t>(size), history.end() - static_cast<std::ptrdiff_t>(size)))
        continue;
      Tokens longer = history;
      for (std::size_t i = 0; i < count; ++i) longer.push_back(longer[next + i]);
      return {longer.end() - static_cast<std::ptrdiff_t>(count), longer.end()};
    }
  }
  return {};
}

TEST(NgramSource, ProposesWhatFollowedTheLongestAndLatest) {
  const struct {
    const char* history;
    const char* proposed;
  } cases[] = {
      {"the quick brown fox; the qui", "ck br"},
      {"abXabYab", "YabYa"},         // the latest; it runs into the present
      {"abcdX bcdY abcd", "X bcd"},  // a longer gram outweighs a later one
      {"abcabc", "abcab"},           // goes on with itself
      {"aaaa", "aaaaa"},             //
      {"abcdef", ""},                // nothing occurred before
      {"aXbXcXdX", ""},              // one token is no gram
      {"", ""},
      {"a", ""},
      {"aa", ""},
      {"aaa", "aaaaa"},
  };
  for (const auto& c : cases) EXPECT_EQ(proposed(c.history), c.proposed) << c.history;
  EXPECT_EQ(proposed("abcabc", 0), "");
}

TEST(NgramSource, EqualsTryingEveryPlace) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    const std::uint64_t vocabulary = 2 + rng.below(6);
    NgramSource source(NgramSource::kSlotsMax);  // entries meet rarely, and with these seeds never
    Tokens history;
    for (int round = 0; round < 25; ++round) {
      for (std::uint64_t count = 1 + rng.below(4); count > 0; --count)
        history.push_back(TokenId{static_cast<std::int32_t>(rng.below(vocabulary))});
      if (rng.chance(0.5)) source.observe(history);
      Tokens into(1 + rng.below(8));
      const std::size_t count = into.size();
      into.resize(source.propose(history, into));
      ASSERT_EQ(into, naive(history, count)) << "seed " << seed << ", round " << round;
    }
  }
}

// However small the index, what is proposed followed an equal gram somewhere.
TEST(NgramSource, AFullIndexForgetsAndIsNeverWrong) {
  Rng rng(7);
  NgramSource source(1);
  const std::size_t bytes = source.memory_bytes();
  Tokens history;
  std::size_t found = 0;
  for (int i = 0; i < 20'000; ++i) {
    history.push_back(TokenId{static_cast<std::int32_t>(rng.below(30))});
    Tokens into(1);
    if (source.propose(history, into) == 0) continue;
    ++found;
    bool followed = false;
    for (std::size_t next = history.size() - 1; next >= 2 && !followed; --next) {
      followed =
          history[next] == into[0] && history[next - 1] == history.back() && history[next - 2] == history[history.size() - 2];
    }
    ASSERT_TRUE(followed) << i;
  }
  EXPECT_GT(found, 1000U);
  EXPECT_EQ(source.memory_bytes(), bytes);
}

TEST(NgramSource, MemoryIsBounded) {
  EXPECT_EQ(NgramSource(0).memory_bytes(), 1024U);
  EXPECT_EQ(NgramSource(1000).memory_bytes(), 4096U * 4);
  EXPECT_EQ(NgramSource(SIZE_MAX).memory_bytes(), NgramSource::kSlotsMax * 4);
}

}  // namespace
}  // namespace linnet
