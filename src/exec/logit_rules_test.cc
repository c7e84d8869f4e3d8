#include "exec/logit_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"

namespace linnet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<TokenId> tokens_of(std::initializer_list<int> ids) {
  std::vector<TokenId> tokens;
  for (const int id : ids) tokens.push_back(TokenId{id});
  return tokens;
}

std::vector<float> applied(const std::vector<float>& logits, const SamplingParams& params, const RowContext& context,
                           std::uint64_t step) {
  LogitRules rules(static_cast<std::int32_t>(logits.size()));
  const std::span<const float> changed = rules.apply(logits, params, context, step);
  return {changed.begin(), changed.end()};
}

TEST(LogitRules, WithoutRulesTheLogitsAreNotCopied) {
  const std::vector<float> logits = {1, 2, 3};
  const std::vector<TokenId> history = tokens_of({0, 1, 1});
  LogitRules rules(3);
  EXPECT_EQ(rules.apply(logits, {}, {.history = history}, 2).data(), logits.data());
}

// The window of each penalty: prompt 0 1 0, answer 2 2 3.
TEST(LogitRules, Windows) {
  const std::vector<float> ones(5, 1);
  const std::vector<TokenId> history = tokens_of({0, 1, 0, 2, 2, 3});
  constexpr std::uint64_t kStep = 3;
  struct Row {
    std::string says;
    SamplingParams params;
    std::vector<float> expected;
  };
  const std::vector<Row> rows = {
      {"repetition: the last 20", {.repetition_penalty = 2}, {0.5, 0.5, 0.5, 0.5, 1}},
      {"repetition: the last two", {.repetition_penalty = 2, .repetition_context = 2}, {1, 1, 0.5, 0.5, 1}},
      {"presence: the answer", {.presence_penalty = 0.5}, {1, 1, 0.5, 0.5, 1}},
      {"presence: everything", {.presence_penalty = 0.5, .presence_context = 0}, {0.5, 0.5, 0.5, 0.5, 1}},
      {"presence: the last four", {.presence_penalty = 0.5, .presence_context = 4}, {0.5, 1, 0.5, 0.5, 1}},
      {"frequency: the answer", {.frequency_penalty = 0.5}, {1, 1, 0, 0.5, 1}},
      {"frequency: everything", {.frequency_penalty = 0.5, .frequency_context = 0}, {0, 0.5, 0, 0.5, 1}},
      {"frequency: the last one", {.frequency_penalty = -0.5, .frequency_context = 1}, {1, 1, 1, 1.5, 1}},
      {"a window longer than the history", {.frequency_penalty = 0.5, .frequency_context = 100}, {0, 0.5, 0, 0.5, 1}},
  };
  for (const Row& row : rows) EXPECT_EQ(applied(ones, row.params, {.history = history}, kStep), row.expected) << row.says;
}

TEST(LogitRules, RepetitionMovesBothSignsDown) {
  const std::vector<TokenId> history = tokens_of({0, 1, 2});
  EXPECT_EQ(applied({4, -4, 0, 4}, {.repetition_penalty = 2}, {.history = history}, 0), (std::vector<float>{2, -8, 0, 4}));
}

TEST(LogitRules, BiasComesBeforePenalties) {
  const std::vector<TokenId> history = tokens_of({1});
  const std::vector<LogitBias> bias = {{.token = TokenId{1}, .bias = -3}};
  EXPECT_EQ(applied({0, 1, 0}, {.repetition_penalty = 2}, {.history = history, .logit_bias = bias}, 1),
            (std::vector<float>{0, -4, 0}));
}

TEST(LogitRules, EndTokensAreBarredUntilMinTokens) {
  const std::vector<TokenId> ends = tokens_of({0, 2});
  const RowContext context{.end_tokens = ends};
  EXPECT_EQ(applied({1, 1, 1}, {.min_tokens = 2}, context, 1), (std::vector<float>{-kInfinity, 1, -kInfinity}));
  EXPECT_EQ(applied({1, 1, 1}, {.min_tokens = 2}, context, 2), (std::vector<float>{1, 1, 1}));
}

TEST(LogitRules, MaskBarsWhatItDoesNotName) {
  std::vector<float> logits(70, 1);
  const std::vector<std::uint32_t> mask = {1U << 31U, 1U << 5U};  // one word short: the model has more logits than names
  const std::vector<float> changed = applied(logits, {}, {.mask = mask}, 0);
  for (std::size_t token = 0; token < logits.size(); ++token) {
    EXPECT_EQ(changed[token], token == 31 || token == 37 ? 1 : -kInfinity) << token;
  }
}

// A row that failed must be seen to have failed.
TEST(LogitRules, WhatIsNotFiniteStaysSo) {
  const std::vector<std::uint32_t> mask = {0b100};
  const std::vector<TokenId> ends = tokens_of({1});
  const std::vector<float> changed =
      applied({std::numeric_limits<float>::quiet_NaN(), kInfinity, 1}, {.min_tokens = 9}, {.end_tokens = ends, .mask = mask}, 0);
  EXPECT_TRUE(std::isnan(changed[0]));
  EXPECT_EQ(changed[1], kInfinity);
}

double penalized(double logit, const SamplingParams& params, int token, const std::vector<TokenId>& history, std::size_t answer) {
  const auto count = [&](std::size_t window) {
    return static_cast<double>(
        std::count(history.end() - static_cast<std::ptrdiff_t>(std::min(window, history.size())), history.end(), TokenId{token}));
  };
  const auto size_of = [&](std::int32_t context) { return context == 0 ? history.size() : static_cast<std::size_t>(context); };
  const auto presence = params.presence_context ? size_of(*params.presence_context) : answer;
  const auto frequency = params.frequency_context ? size_of(*params.frequency_context) : answer;
  if (count(size_of(params.repetition_context)) > 0) {
    logit = logit < 0 ? logit * static_cast<double>(params.repetition_penalty)
                      : logit / static_cast<double>(params.repetition_penalty);
  }
  if (count(presence) > 0) logit -= static_cast<double>(params.presence_penalty);
  return logit - static_cast<double>(params.frequency_penalty) * count(frequency);
}

// Everything at once against the definition in double precision; scratch is reused from call to call.
TEST(LogitRules, EqualTheDefinition) {
  Rng rng(5);
  constexpr int kVocabulary = 50;
  LogitRules rules(kVocabulary);
  const auto unit = [&rng] { return static_cast<float>(rng.below(2001)) / 1000 - 1; };
  const auto context_size = [&rng] { return static_cast<std::int32_t>(rng.below(12)); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> logits(kVocabulary);
    for (float& logit : logits) logit = 10 * unit();
    std::vector<TokenId> history(1 + rng.below(30));
    for (TokenId& token : history) token = static_cast<TokenId>(rng.below(kVocabulary));
    const std::size_t answer = rng.below(history.size());
    std::vector<LogitBias> bias;
    for (int token = 0; token < kVocabulary; ++token) {
      if (rng.chance(0.1)) bias.push_back({.token = TokenId{token}, .bias = 5 * unit()});
    }
    SamplingParams params{.repetition_context = context_size()};
    if (rng.chance(0.7)) params.repetition_penalty = 1.5F + unit();
    if (rng.chance(0.7)) params.presence_penalty = 2 * unit();
    if (rng.chance(0.7)) params.frequency_penalty = 2 * unit();
    if (rng.chance(0.5)) params.presence_context = context_size();
    if (rng.chance(0.5)) params.frequency_context = context_size();
    const std::span<const float> changed = rules.apply(logits, params, {.history = history, .logit_bias = bias}, answer);
    for (int token = 0; token < kVocabulary; ++token) {
      double biased = static_cast<double>(logits[static_cast<std::size_t>(token)]);
      for (const LogitBias& entry : bias) biased += entry.token == TokenId{token} ? static_cast<double>(entry.bias) : 0;
      ASSERT_NEAR(static_cast<double>(changed[static_cast<std::size_t>(token)]),
                  penalized(biased, params, token, history, answer), 2e-4)
          << "round " << round << " token " << token;
    }
  }
}

TEST(RowContext, SamplesBeforeTheLastDoNotKnowTheLastInputs) {
  const std::vector<TokenId> history = tokens_of({1, 2, 3, 4});
  const std::vector<std::uint32_t> mask = {10, 11, 20, 21, 30, 31};
  const RowContext context{.history = history, .mask = mask};
  for (std::int32_t index = 0; index < 3; ++index) {
    const RowContext one = context.of_sample(index, 3);
    EXPECT_EQ(one.history.size(), static_cast<std::size_t>(2 + index));
    ASSERT_EQ(one.mask.size(), 2U);
    EXPECT_EQ(one.mask[1], static_cast<std::uint32_t>(10 * (index + 1) + 1));
  }
  EXPECT_TRUE(RowContext{}.of_sample(0, 2).mask.empty());
}

}  // namespace
}  // namespace linnet
