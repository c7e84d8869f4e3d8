#include "speculation/acceptance.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"

namespace linnet {
namespace {

// A letter is a token; '.' ends an answer.
std::vector<TokenId> tokens(const std::string& text) {
  std::vector<TokenId> result;
  for (const char c : text) result.push_back(TokenId{c});
  return result;
}

std::string text_of(std::span<const TokenId> some) {
  std::string text;
  for (const TokenId token : some) text += static_cast<char>(token);
  return text;
}

// What the row draws, in order; asking for more than that is an error.
AcceptanceWalk drawing(const std::string& drawn) {
  AcceptanceWalk walk;
  walk.draw = [drawn](std::size_t position) -> Result<TokenId> {
    if (position >= drawn.size()) return Error{ErrorCode::kInternal, "drawn too far", ""};
    return TokenId{drawn[position]};
  };
  return walk;
}

struct Outcome {
  std::string emitted;
  std::int64_t accepted;
  char correction;  // 0: none
  bool saw_eos;
  bool done;

  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '"' << outcome.emitted << "\", accepted " << outcome.accepted << ", correction "
             << (outcome.correction == 0 ? '-' : outcome.correction) << (outcome.saw_eos ? ", eos" : "")
             << (outcome.done ? ", done" : "");
}

Outcome outcome_of(const AcceptanceResult& result) {
  return {text_of(result.emitted()), result.accepted, result.correction ? static_cast<char>(*result.correction) : '\0',
          result.saw_eos, result.done};
}

TEST(Acceptance, DraftsStandUpToTheFirstThatIsNotDrawn) {
  const std::vector<TokenId> ends = tokens(".!");
  const struct {
    const char* drafts;
    const char* drawn;
    std::size_t left;
    Outcome outcome;
  } cases[] = {
      {"", "a", 9, {"a", 0, 'a', false, false}},           // plain decode
      {"abc", "abcd", 9, {"abcd", 3, 'd', false, false}},  // all, and the bonus
      {"abc", "abX", 9, {"abX", 2, 'X', false, false}},    // a correction
      {"abc", "X", 9, {"X", 0, 'X', false, false}},
      {"ab.", "ab.", 9, {"ab", 3, 0, true, true}},      // a drafted end stands and is not emitted
      {"ab.c", "ab.", 9, {"ab", 3, 0, true, true}},     // nothing after it is drawn
      {"abc", "a!", 9, {"a", 1, '!', true, true}},      // an end as correction
      {"abc", "abc.", 9, {"abc", 3, '.', true, true}},  // and as bonus
      {"", ".", 1, {"", 0, '.', true, true}},
      {"abc", "ab", 2, {"ab", 2, 0, false, true}},        // the limit falls among the drafts
      {"abc", "abc", 3, {"abc", 3, 0, false, true}},      // on the last one: no bonus is drawn
      {"abc", "abX", 3, {"abX", 2, 'X', false, true}},    // on the correction
      {"abc", "abcd", 4, {"abcd", 3, 'd', false, true}},  // on the bonus
      {"", "a", 1, {"a", 0, 'a', false, true}},
      {"ab.", "ab.", 3, {"ab", 3, 0, true, true}},  // the end is the last allowed token
      {"aaaa", "aaaaa", 9, {"aaaaa", 4, 'a', false, false}},
  };
  for (const auto& c : cases) {
    const auto result = accept_drafts(tokens(c.drafts), {.tokens_left = c.left, .ends = ends}, drawing(c.drawn));
    ASSERT_TRUE(result.ok()) << c.drafts << " " << c.drawn << ": " << result.error().message;
    EXPECT_EQ(outcome_of(*result), c.outcome) << c.drafts << " " << c.drawn << " " << c.left;
    EXPECT_EQ(result->position, std::string(c.drawn).size());
    EXPECT_FALSE(result->grammar_done);
  }
}

TEST(Acceptance, IgnoredEndsAreTokensLikeOthers) {
  const auto result = accept_drafts(tokens("a."), {.tokens_left = 9}, drawing("a.b"));
  EXPECT_EQ(outcome_of(*result), (Outcome{"a.b", 2, 'b', false, false}));
}

// A grammar sees each token before the next is drawn, and ends the answer where it is complete.
TEST(Acceptance, TheGrammarWalksAlong) {
  const std::vector<TokenId> ends = tokens(".");
  const struct {
    const char* drafts;
    const char* drawn;
    const char* seen;
    Outcome outcome;
    bool grammar_done;
  } cases[] = {
      {"ab", "abc", "abc", {"abc", 2, 'c', false, false}, false},
      {"a}b", "a}", "a}", {"a}", 2, 0, false, true}, true},   // complete with a draft
      {"ab", "a}", "a}", {"a}", 1, '}', false, true}, true},  // with the correction
      {"a.", "a.", "a", {"a", 2, 0, true, true}, false},      // an end token is none of the grammar's
  };
  for (const auto& c : cases) {
    std::string seen;
    AcceptanceWalk walk = drawing(c.drawn);
    walk.draw = [draw = walk.draw, &seen](std::size_t position) {
      EXPECT_EQ(seen.size(), position);
      return draw(position);
    };
    walk.advance = [&seen](TokenId token) -> Result<bool> {
      seen += static_cast<char>(token);
      return seen.back() == '}';
    };
    const auto result = accept_drafts(tokens(c.drafts), {.tokens_left = 9, .ends = ends}, walk);
    EXPECT_EQ(outcome_of(*result), c.outcome) << c.drafts;
    EXPECT_EQ(result->grammar_done, c.grammar_done) << c.drafts;
    EXPECT_EQ(seen, c.seen);
  }
}

TEST(Acceptance, ErrorsOfTheRowArePassedOn) {
  const Error broken{ErrorCode::kInternal, "NaN", ""};
  AcceptanceWalk walk = drawing("ab");
  walk.advance = [&broken](TokenId token) -> Result<bool> {
    if (token == TokenId{'b'}) return broken;
    return false;
  };
  EXPECT_EQ(accept_drafts(tokens("abc"), {.tokens_left = 9}, walk).error(), broken);
  EXPECT_EQ(accept_drafts(tokens("abc"), {.tokens_left = 9}, drawing("ab")).error().message, "drawn too far");
}

TEST(Acceptance, TheLongestWindowFits) {
  const std::string drafts(static_cast<std::size_t>(kDraftsMax), 'a');
  const auto result = accept_drafts(tokens(drafts), {.tokens_left = SIZE_MAX}, drawing(drafts + "b"));
  EXPECT_EQ(text_of(result->emitted()), drafts + "b");
}

// A model of four tokens, the next depending on the last, sampled as the engine does: one number for each (seed, step).
constexpr std::array<std::array<double, 4>, 4> kNext = {
    {{.4, .3, .2, .1}, {.1, .1, .1, .7}, {.25, .25, .25, .25}, {.05, .15, .3, .5}}};

TokenId sampled(std::uint64_t seed, std::uint64_t step, TokenId last) {
  double left = static_cast<double>(random_bits(seed, step) >> 11U) * 0x1p-53;
  std::int32_t token = 0;
  while (token < 3 && left >= kNext[index_of(last)][static_cast<std::size_t>(token)])
    left -= kNext[index_of(last)][static_cast<std::size_t>(token++)];
  return TokenId{token};
}

// An answer in rounds of random depth with random drafts, right ones among them.
std::vector<TokenId> speculated(std::uint64_t seed, std::size_t length, Rng& drafting) {
  std::vector<TokenId> answer;
  while (answer.size() < length) {
    std::vector<TokenId> drafts(drafting.below(5));
    for (TokenId& draft : drafts) draft = TokenId{static_cast<std::int32_t>(drafting.below(4))};
    AcceptanceWalk walk;
    walk.draw = [&](std::size_t position) -> Result<TokenId> {
      const TokenId last = position > 0 ? drafts[position - 1] : (answer.empty() ? TokenId{0} : answer.back());
      return sampled(seed, answer.size() + position, last);
    };
    const auto result = accept_drafts(drafts, {.tokens_left = length - answer.size()}, walk);
    answer.insert(answer.end(), result->emitted().begin(), result->emitted().end());
  }
  return answer;
}

TEST(Acceptance, TheAnswerIsTheOneWithoutDrafts) {
  Rng drafting(1);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::vector<TokenId> plain;
    for (std::uint64_t step = 0; step < 12; ++step)
      plain.push_back(sampled(seed, step, plain.empty() ? TokenId{0} : plain.back()));
    ASSERT_EQ(speculated(seed, plain.size(), drafting), plain) << seed;
  }
}

// 100,000 answers of three tokens against what the model says of each of the 64. The bound is the chi-square distribution's with
// 63 degrees of freedom at 1 in 10,000; the seeds are fixed.
TEST(Acceptance, TheDistributionIsTheModels) {
  constexpr int kAnswers = 100'000;
  Rng drafting(2);
  std::map<std::vector<TokenId>, int> counts;
  for (std::uint64_t seed = 0; seed < kAnswers; ++seed) ++counts[speculated(seed, 3, drafting)];
  double chi_square = 0;
  for (std::int32_t code = 0; code < 64; ++code) {
    const std::vector<TokenId> answer = {TokenId{code / 16}, TokenId{code / 4 % 4}, TokenId{code % 4}};
    double expected = kAnswers;
    TokenId last{0};
    for (const TokenId token : answer) {
      expected *= kNext[index_of(last)][index_of(token)];
      last = token;
    }
    const double off = counts[answer] - expected;
    chi_square += off * off / expected;
  }
  EXPECT_LT(chi_square, 113.5);
  EXPECT_GT(chi_square, 28.0);  // nor better than chance
}

}  // namespace
}  // namespace linnet
