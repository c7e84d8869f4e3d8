#include "exec/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "exec/token_weight.h"

namespace linnet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::optional<std::int32_t> sample(const std::vector<float>& logits, const SamplingParams& params, std::uint64_t step = 0) {
  Sampler sampler(static_cast<std::int32_t>(logits.size()));
  const std::optional<TokenId> token = sampler.sample(logits, params, step);
  if (!token) return std::nullopt;
  return static_cast<std::int32_t>(*token);
}

// Survivors by the definition: sort everything, apply one filter after the other.
std::vector<bool> naive_survivors(const std::vector<float>& logits, const SamplingParams& params) {
  const float max = *std::max_element(logits.begin(), logits.end());
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::vector<bool> keep(logits.size(), true);
  if (params.top_p < 1) {
    std::uint64_t total = 0;
    for (const float logit : logits) total += weight_of(logit - max);
    const double dropped = (1.0 - static_cast<double>(params.top_p)) * static_cast<double>(total);
    std::uint64_t cumulative = 0;
    for (auto token = order.rbegin(); token != order.rend(); ++token) {
      cumulative += weight_of(logits[*token] - max);
      keep[*token] = static_cast<double>(cumulative) > dropped;
    }
  }
  for (std::size_t token = 0; token < logits.size(); ++token) {
    if (params.min_p > 0 && logits[token] < max + static_cast<float>(std::log(static_cast<double>(params.min_p))))
      keep[token] = false;
  }
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    if (params.top_k > 0 && rank >= static_cast<std::size_t>(params.top_k)) keep[order[rank]] = false;
  }
  return keep;
}

bool xtc_acts(const SamplingParams& params, std::uint64_t step) {
  const double uniform = static_cast<double>(random_bits(params.seed, step, 1) >> 11U) / static_cast<double>(1ULL << 53U);
  return params.xtc_probability > 0 && uniform < static_cast<double>(params.xtc_probability);
}

// top_p and min_p; then, of the tokens above the threshold, all but the least likely go, exempt ones stay; then top_k.
std::vector<bool> naive_xtc_survivors(const std::vector<float>& logits, SamplingParams params, const RowContext& context) {
  const std::int32_t top_k = std::exchange(params.top_k, 0);
  std::vector<bool> keep = naive_survivors(logits, params);
  const float max = *std::max_element(logits.begin(), logits.end());
  std::uint64_t total = 0;
  for (const float logit : logits) total += weight_of(logit - max);
  float least = kInfinity;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double probability = static_cast<double>(weight_of(logits[token] - max)) / static_cast<double>(total);
    if (keep[token] && probability > static_cast<double>(params.xtc_threshold)) least = std::min(least, logits[token]);
  }
  std::vector<std::size_t> order;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const auto id = static_cast<TokenId>(token);
    const bool exempt = std::count(context.end_tokens.begin(), context.end_tokens.end(), id) > 0 ||
                        std::count(context.xtc_exempt.begin(), context.xtc_exempt.end(), id) > 0;
    if (logits[token] > least && !exempt) keep[token] = false;
    if (keep[token]) order.push_back(token);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    if (top_k > 0 && rank >= static_cast<std::size_t>(top_k)) keep[order[rank]] = false;
  }
  return keep;
}

std::int32_t naive_sample(const std::vector<float>& logits, const SamplingParams& params, std::uint64_t step,
                          const RowContext& context = {}) {
  float max = *std::max_element(logits.begin(), logits.end());
  if (params.temperature == 0) return static_cast<std::int32_t>(std::find(logits.begin(), logits.end(), max) - logits.begin());
  const std::vector<bool> keep =
      xtc_acts(params, step) ? naive_xtc_survivors(logits, params, context) : naive_survivors(logits, params);
  max = -kInfinity;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    if (keep[token]) max = std::max(max, logits[token]);
  }
  std::uint64_t total = 0;
  const auto weight = [&](std::size_t token) {
    return keep[token] ? weight_of((logits[token] - max) * (1 / params.temperature)) : std::uint64_t{0};
  };
  for (std::size_t token = 0; token < logits.size(); ++token) total += weight(token);
  __extension__ using Wide = unsigned __int128;
  const auto target = static_cast<std::uint64_t>((static_cast<Wide>(random_bits(params.seed, step)) * total) >> 64U);
  std::uint64_t cumulative = 0;
  std::size_t token = 0;
  while (cumulative + weight(token) <= target) cumulative += weight(token++);
  return static_cast<std::int32_t>(token);
}

std::vector<float> random_logits(Rng& rng, std::size_t count) {
  std::vector<float> logits(count);
  const double spread = std::vector<double>{0, 0.5, 3, 10, 60}[rng.below(5)];
  const bool ties = rng.chance(0.3);
  for (float& logit : logits) {
    double uniform = static_cast<double>(rng.below(1U << 20U)) / (1U << 20U);
    if (ties) uniform = std::floor(uniform * 8) / 8;
    logit = static_cast<float>(5 - spread * uniform * uniform);
    if (rng.chance(0.05)) logit = -kInfinity;
  }
  logits[rng.below(count)] = 4;
  return logits;
}

TEST(Sampler, EqualsTheDefinition) {
  Rng rng(1);
  for (int round = 0; round < 3000; ++round) {
    const std::vector<float> logits = random_logits(rng, 1 + rng.below(round % 50 == 0 ? 5000 : 400));
    Sampler sampler(static_cast<std::int32_t>(logits.size()));
    for (std::uint64_t step = 0; step < 3; ++step) {
      SamplingParams params{.seed = rng.bits()};
      if (rng.chance(0.2)) params.temperature = static_cast<float>(rng.below(30)) / 10;
      if (rng.chance(0.5)) params.top_p = std::vector<float>{1e-6F, 0.1F, 0.5F, 0.9F, 0.999F, 0.9999999F}[rng.below(6)];
      if (rng.chance(0.3)) params.min_p = std::vector<float>{1e-9F, 0.01F, 0.1F, 0.9F}[rng.below(4)];
      if (rng.chance(0.3)) params.top_k = static_cast<std::int32_t>(1 + rng.below(logits.size() + 10));
      if (rng.chance(0.3)) params.xtc_probability = std::vector<float>{0.5F, 1}[rng.below(2)];
      params.xtc_threshold = std::vector<float>{0, 0.01F, 0.1F, 0.5F}[rng.below(4)];
      const std::vector<TokenId> ends = {static_cast<TokenId>(rng.below(logits.size()))};
      const std::vector<TokenId> exempt = {static_cast<TokenId>(rng.below(logits.size()))};
      const RowContext context{.end_tokens = ends, .xtc_exempt = exempt};
      const std::optional<TokenId> token = sampler.sample(logits, params, context, step);
      ASSERT_TRUE(token.has_value());
      ASSERT_EQ(static_cast<std::int32_t>(*token), naive_sample(logits, params, step, context))
          << "round " << round << " vocabulary " << logits.size() << " temperature " << params.temperature << " top_p "
          << params.top_p << " min_p " << params.min_p << " top_k " << params.top_k << " xtc " << params.xtc_probability << ", "
          << params.xtc_threshold;
    }
  }
}

// In double precision, by sorting.
TEST(Sampler, LogprobsAreThoseOfTheLogSoftmax) {
  Rng rng(2);
  for (int round = 0; round < 300; ++round) {
    const std::vector<float> logits = random_logits(rng, 1 + rng.below(500));
    Sampler sampler(static_cast<std::int32_t>(logits.size()));
    const SamplingParams params{.temperature = 0.5F, .top_p = 0.9F, .top_k = 5, .seed = rng.bits()};
    const TokenId token = *sampler.sample(logits, params, 0);
    const auto top = static_cast<std::int32_t>(rng.below(kTopLogprobsMax + 1));
    const TokenLogprobs logprobs = sampler.logprobs(token, top);
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    const auto exact = [&](TokenId id) { return static_cast<double>(logits[index_of(id)]) - std::log(total); };
    std::vector<TokenId> order;
    for (std::size_t id = 0; id < logits.size(); ++id) order.push_back(static_cast<TokenId>(id));
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return logits[index_of(a)] > logits[index_of(b)]; });
    ASSERT_NEAR(static_cast<double>(logprobs.logprob), exact(token), 2e-6 * (1 + std::abs(exact(token))));
    ASSERT_EQ(logprobs.top_count, std::min(top, static_cast<std::int32_t>(logits.size())));
    for (std::size_t rank = 0; rank < logprobs.most_likely().size(); ++rank) {
      const TokenLogprob entry = logprobs.most_likely()[rank];
      ASSERT_EQ(entry.token, order[rank]) << "round " << round << " rank " << rank;
      if (entry.logprob == -kInfinity) continue;
      ASSERT_NEAR(static_cast<double>(entry.logprob), exact(entry.token), 2e-6 * (1 + std::abs(exact(entry.token))));
    }
  }
}

// Rules come before the distribution that is reported.
TEST(Sampler, LogprobsSeeTheRules) {
  Sampler sampler(3);
  const std::vector<std::uint32_t> mask = {0b011};
  const std::vector<LogitBias> bias = {{.token = TokenId{0}, .bias = 5}};
  const std::vector<float> logits = {-5, 0, 9};
  EXPECT_EQ(sampler.sample(logits, {.temperature = 0}, {.logit_bias = bias, .mask = mask}, 0), TokenId{0});
  const TokenLogprobs logprobs = sampler.logprobs(TokenId{0}, 3);
  EXPECT_NEAR(static_cast<double>(logprobs.logprob), std::log(0.5), 1e-6);
  EXPECT_EQ(logprobs.top[1].token, TokenId{1});
  EXPECT_EQ(logprobs.top[2].logprob, -kInfinity);
}

TEST(Sampler, XtcDropsAllButTheLeastOfTheTopChoices) {
  std::vector<float> logits;
  for (const double p : {0.4, 0.25, 0.15, 0.1, 0.06, 0.04}) logits.push_back(static_cast<float>(std::log(p)));
  const SamplingParams always{.xtc_probability = 1, .xtc_threshold = 0.12F};
  Sampler sampler(6);
  std::vector<int> counts(6);
  for (std::uint64_t step = 0; step < 500; ++step) ++counts[index_of(*sampler.sample(logits, always, step))];
  EXPECT_EQ(counts[0] + counts[1], 0);
  for (const std::size_t token : {2U, 3U, 4U, 5U}) EXPECT_GT(counts[token], 0) << token;
  const std::vector<TokenId> newline = {TokenId{0}};
  counts.assign(6, 0);
  for (std::uint64_t step = 0; step < 500; ++step)
    ++counts[index_of(*sampler.sample(logits, always, {.xtc_exempt = newline}, step))];
  EXPECT_GT(counts[0], 0);
  EXPECT_EQ(counts[1], 0);
}

TEST(Sampler, GreedyTakesTheLowestOfEquals) {
  EXPECT_EQ(sample({1, 3, 3, 2}, {.temperature = 0}), 1);
  EXPECT_EQ(sample({-kInfinity, -kInfinity, -5}, {.temperature = 0}), 2);
  std::vector<float> logits(1000, -2);
  EXPECT_EQ(sample(logits, {.temperature = 0}), 0);
  for (const std::size_t best : {0U, 15U, 16U, 63U, 64U, 127U, 960U, 999U}) {
    std::vector<float> with_best = logits;
    with_best[best] = 1;
    EXPECT_EQ(sample(with_best, {.temperature = 0}), static_cast<std::int32_t>(best));
    EXPECT_EQ(sample(with_best, {.top_k = 1}), static_cast<std::int32_t>(best));
  }
}

TEST(Sampler, RowsThatAreNotFiniteFail) {
  for (const float temperature : {0.0F, 1.0F}) {
    for (const std::size_t place : {0U, 17U, 64U, 99U}) {
      for (const float bad : {kNan, -kNan, kInfinity}) {
        std::vector<float> logits(100, 0);
        logits[place] = bad;
        EXPECT_FALSE(sample(logits, {.temperature = temperature}).has_value()) << place << " " << bad;
      }
    }
    EXPECT_FALSE(sample(std::vector<float>(100, -kInfinity), {.temperature = temperature}).has_value());
  }
}

TEST(Sampler, ExtremeValuesStayWithinTheRules) {
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_EQ(sample({-kMax, kMax, -kInfinity}, {}), 1);
  EXPECT_EQ(sample({0, 10, 0}, {.temperature = std::numeric_limits<float>::denorm_min()}), 1);
  for (std::uint64_t step = 0; step < 100; ++step) {
    EXPECT_NE(sample({0, -kInfinity, 5}, {.temperature = kMax}, step), 1);
    EXPECT_EQ(sample({0, 5, 1}, {.top_p = 1e-30F}, step), 1);
    EXPECT_EQ(sample({3}, {.top_p = 0.5F, .min_p = 0.5F, .top_k = 3}, step), 0);
  }
}

// Chi-square of 20,000 draws against the exact probabilities; bounds are the 99.9 % quantiles.
double chi_square(const std::vector<float>& logits, const SamplingParams& params, const std::vector<double>& expected) {
  constexpr int kDraws = 20000;
  Sampler sampler(static_cast<std::int32_t>(logits.size()));
  std::vector<int> counts(logits.size());
  for (int step = 0; step < kDraws; ++step) ++counts[index_of(*sampler.sample(logits, params, static_cast<std::uint64_t>(step)))];
  double sum = 0;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double mean = expected[token] * kDraws;
    if (mean == 0) {
      EXPECT_EQ(counts[token], 0);
      continue;
    }
    sum += (counts[token] - mean) * (counts[token] - mean) / mean;
  }
  return sum;
}

TEST(Sampler, DrawsFollowTheDistribution) {
  std::vector<float> logits;
  for (const double p : {0.4, 0.25, 0.15, 0.1, 0.06, 0.04}) logits.push_back(static_cast<float>(std::log(p)));
  EXPECT_LT(chi_square(logits, {.seed = 3}, {0.4, 0.25, 0.15, 0.1, 0.06, 0.04}), 20.52);
  // From below, 0.04, 0.1 and 0.2 are not above 0.25; 0.35 is.
  EXPECT_LT(chi_square(logits, {.top_p = 0.75F, .seed = 4}, {0.5, 0.3125, 0.1875, 0, 0, 0}), 13.82);
  EXPECT_LT(chi_square(logits, {.top_k = 2, .seed = 5}, {0.4 / 0.65, 0.25 / 0.65, 0, 0, 0, 0}), 10.83);
  EXPECT_LT(chi_square(logits, {.min_p = 0.3F, .seed = 6}, {0.5, 0.3125, 0.1875, 0, 0, 0}), 13.82);
  std::vector<double> squared;
  for (const double p : {0.4, 0.25, 0.15, 0.1, 0.06, 0.04}) squared.push_back(p * p / 0.2602);
  EXPECT_LT(chi_square(logits, {.temperature = 0.5F, .seed = 7}, squared), 20.52);
  // Half of the time without the first two: 0.5 * p + 0.5 * p / 0.35.
  EXPECT_LT(chi_square(logits, {.seed = 8, .xtc_probability = 0.5F, .xtc_threshold = 0.12F},
                       {0.2, 0.125, 0.075 + 0.075 / 0.35, 0.05 + 0.05 / 0.35, 0.03 + 0.03 / 0.35, 0.02 + 0.02 / 0.35}),
            20.52);
}

// Four equal tokens and p = 1/2: from below, 1/4 and 1/2 are not above 1/2.
TEST(Sampler, TopPDropsWhatOnlyReachesTheBound) {
  std::vector<int> counts(4);
  for (std::uint64_t step = 0; step < 1000; ++step)
    ++counts[static_cast<std::size_t>(*sample({2, 2, 2, 2}, {.top_p = 0.5F}, step))];
  EXPECT_NEAR(counts[0], 500, 60);
  EXPECT_NEAR(counts[1], 500, 60);
  EXPECT_EQ(counts[2] + counts[3], 0);
}

TEST(Sampler, SeedAndStepAreAllTheRandomness) {
  const std::vector<float> logits(1000, 0);
  EXPECT_EQ(sample(logits, {.seed = 1}, 5), sample(logits, {.seed = 1}, 5));
  int equal = 0;
  for (std::uint64_t step = 0; step < 100; ++step) {
    equal += sample(logits, {.seed = 1}, step) == sample(logits, {.seed = 2}, step) ? 1 : 0;
    equal += sample(logits, {.seed = 1}, step) == sample(logits, {.seed = 1}, step + 1) ? 1 : 0;
  }
  EXPECT_LT(equal, 5);
  EXPECT_NE(sample(logits, {.seed = 0}, 0), sample(logits, {.seed = 1}, 0));
}

// Any compiler, any vector width: this is what a seed means, for ever.
TEST(Sampler, GivesTheSameTokensOnEveryMachine) {
  Rng rng(11);
  std::vector<float> logits(5000);
  for (float& logit : logits) logit = static_cast<float>(rng.below(1U << 16U)) / 4096;
  Sampler sampler(5000);
  std::vector<std::int32_t> tokens;
  for (std::uint64_t step = 0; step < 4; ++step) {
    for (const SamplingParams& params : {SamplingParams{.seed = 5}, SamplingParams{.temperature = 0.7F, .top_p = 0.9F, .seed = 5},
                                         SamplingParams{.min_p = 0.05F, .top_k = 900, .seed = 5}}) {
      tokens.push_back(static_cast<std::int32_t>(*sampler.sample(logits, params, step)));
    }
  }
  EXPECT_EQ(tokens, (std::vector<std::int32_t>{450, 485, 459, 816, 816, 823, 3538, 3551, 3548, 3551, 3577, 3551}));
}

TEST(TokenWeight, FollowsExp) {
  EXPECT_EQ(weight_of(0), std::uint64_t{1} << 40U);
  EXPECT_EQ(weight_of(-kInfinity), 0U);
  EXPECT_EQ(weight_of(kWeightlessBelow), 0U);
  for (float x = 0; x > -29; x -= 0.00137F) {
    const double exact = std::exp(static_cast<double>(x)) * kWeightOfOne;
    ASSERT_NEAR(static_cast<double>(weight_of(x)), exact, exact * 5e-7 + 0.5) << x;
  }
}

}  // namespace
}  // namespace linnet
