#include "exec/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "exec/token_weight.h"

namespace linnet {
namespace {

constexpr std::size_t kBlock = 64;  // logits
constexpr std::size_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
// ln x for 0 < x <= 1, the same bits on every machine: x = m * 2^e, ln m = 2 atanh((m - 1) / (m + 1)).
double natural_log(double x) {
  int exponent = 0;
  const double m = std::frexp(x, &exponent);  // 0.5 .. 1; exact
  const double z = (m - 1) / (m + 1);         // -1/3 .. 0
  const double square = z * z;
  double sum = 0;
  for (int power = 41; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
  return exponent * 0.6931471805599453 + 2 * z * sum;
}

// 0 .. total - 1, in proportion to 64 random bits.
std::uint64_t scaled_draw(std::uint64_t bits, std::uint64_t total) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * total) >> 64U);
}

std::span<const float> block_of(std::span<const float> logits, std::size_t block) {
  return logits.subspan(block * kBlock, std::min(kBlock, logits.size() - block * kBlock));
}

// The largest of `values`; `finite` becomes false if one of them is NaN or +inf.
float largest(std::span<const float> values, bool& finite) {
  std::array<float, kLanes> lanes;
  lanes.fill(-kInfinity);
  std::array<std::int32_t, kLanes> bad{};
  std::size_t index = 0;
  for (; index + kLanes <= values.size(); index += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[index + lane];
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
      bad[lane] |= value < kInfinity ? 0 : 1;
    }
  }
  for (; index < values.size(); ++index) {
    lanes[0] = values[index] > lanes[0] ? values[index] : lanes[0];
    bad[0] |= values[index] < kInfinity ? 0 : 1;
  }
  for (const std::int32_t lane : bad) finite = finite && lane == 0;
  return *std::max_element(lanes.begin(), lanes.end());
}

}  // namespace

Sampler::Sampler(std::int32_t vocabulary) {
  CHECK(vocabulary >= 1 && vocabulary <= (1 << 20));
  const auto tokens = static_cast<std::size_t>(vocabulary);
  const std::size_t blocks = (tokens + kBlock - 1) / kBlock;
  block_max_.resize(blocks);
  block_order_.resize(blocks);
  block_weight_.resize(blocks);
  candidates_.resize(tokens);
  weights_.resize(tokens);
}

std::optional<TokenId> Sampler::sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t step) {
  CHECK(logits.size() == candidates_.size());
  if (!scan(logits)) return std::nullopt;
  if (params.temperature == 0 || params.top_k == 1) return most_likely(logits);
  // Neither infinite nor 0: their products with 0 and infinity would be NaN.
  using Limits = std::numeric_limits<float>;
  const float inverse_temperature = std::clamp(1 / params.temperature, Limits::min(), Limits::max());
  const std::uint64_t bits = random_bits(params.seed, step);
  const bool filtered = (params.top_p > 0 && params.top_p < 1) || params.min_p > 0 ||
                        (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < logits.size());
  if (!filtered) return draw_all(logits, inverse_temperature, bits);
  return draw_survivors(logits, inverse_temperature, bits, last_survivor(logits, params));
}

// Fills block_max_ and max_; false if the row failed.
bool Sampler::scan(std::span<const float> logits) {
  bool finite = true;
  max_ = -kInfinity;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    block_max_[block] = largest(block_of(logits, block), finite);
    max_ = std::max(max_, block_max_[block]);
  }
  return finite && max_ > -kInfinity;
}

TokenId Sampler::most_likely(std::span<const float> logits) const {
  const auto block = static_cast<std::size_t>(std::find(block_max_.begin(), block_max_.end(), max_) - block_max_.begin());
  const std::span<const float> values = block_of(logits, block);
  const auto offset = static_cast<std::size_t>(std::find(values.begin(), values.end(), max_) - values.begin());
  return static_cast<TokenId>(block * kBlock + offset);
}

// The last token of the ranking that every filter keeps.
Sampler::Ranked Sampler::last_survivor(std::span<const float> logits, const SamplingParams& params) {
  // Tokens below the floor are dropped for certain; among the rest the filters are applied exactly.
  float floor = -kInfinity;
  const bool by_top_p = params.top_p > 0 && params.top_p < 1;
  if (params.min_p > 0) floor = max_ + static_cast<float>(natural_log(static_cast<double>(params.min_p)));
  if (params.top_k > 0) floor = std::max(floor, top_k_floor(params.top_k));
  if (by_top_p) floor = std::max(floor, top_p_floor(logits, params.top_p));
  std::size_t count = gather(logits, std::min(floor, max_));
  const auto top_k = static_cast<std::size_t>(params.top_k);
  const auto first = candidates_.begin();
  if (top_k > 0 && top_k < count) {
    std::nth_element(first, first + static_cast<std::ptrdiff_t>(top_k), first + static_cast<std::ptrdiff_t>(count), before);
    count = top_k;
  }
  if (by_top_p) count = keep_top_p(count);
  return *std::max_element(first, first + static_cast<std::ptrdiff_t>(count), before);
}

// The k-th largest of the blocks' largest logits: at least k tokens are as large.
float Sampler::top_k_floor(std::int32_t top_k) {
  const auto k = static_cast<std::size_t>(top_k);
  if (k > block_max_.size()) return -kInfinity;
  std::copy(block_max_.begin(), block_max_.end(), block_order_.begin());
  const auto kth = block_order_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(block_order_.begin(), kth, block_order_.end(), std::greater<>());
  return *kth;
}

// Sets top_p_mass_. With t = (1 - p) * total, all tokens of weight <= t / vocabulary together weigh at most t, so top_p drops
// them; the logit returned lies safely below the first one that is heavier, with a whole unit for rounding.
float Sampler::top_p_floor(std::span<const float> logits, float top_p) {
  std::uint64_t total = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (block_max_[block] - max_ < kWeightlessBelow) continue;
    for (const float logit : block_of(logits, block)) total += weight_of(logit - max_);
  }
  const double dropped = (1.0 - static_cast<double>(top_p)) * static_cast<double>(total);
  top_p_mass_ = total - std::min(total, static_cast<std::uint64_t>(dropped));
  const double light = (dropped / static_cast<double>(logits.size()) - 1) / kWeightOfOne;
  if (!(light > 0)) return max_ + kWeightlessBelow;
  return max_ + static_cast<float>(natural_log(std::min(light, 1.0)) - 0.01);
}

// Candidates are the tokens whose logit is at least `floor`, which is at most max_; returns how many there are.
std::size_t Sampler::gather(std::span<const float> logits, float floor) {
  std::size_t count = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (block_max_[block] < floor) continue;
    const std::span<const float> values = block_of(logits, block);
    for (std::size_t offset = 0; offset < values.size(); ++offset) {
      candidates_[count] = {.logit = values[offset], .token = static_cast<std::int32_t>(block * kBlock + offset)};
      count += values[offset] >= floor ? 1U : 0U;
    }
  }
  return count;
}

// Of the first `count` candidates, which begin the ranking, moves to the front the shortest beginning that weighs top_p_mass_, or
// all if they weigh less; returns its length, at least 1. Halves the search range: no full sort.
std::size_t Sampler::keep_top_p(std::size_t count) {
  const auto weight = [&](std::size_t index) { return weight_of(candidates_[index].logit - max_); };
  std::size_t kept = 0;  // candidates [0, kept) belong to the beginning
  std::uint64_t mass = 0;
  while (count - kept > 1) {
    const std::size_t middle = kept + (count - kept) / 2;
    const auto first = candidates_.begin();
    std::nth_element(first + static_cast<std::ptrdiff_t>(kept), first + static_cast<std::ptrdiff_t>(middle),
                     first + static_cast<std::ptrdiff_t>(count), before);
    std::uint64_t upper = 0;
    for (std::size_t index = kept; index < middle; ++index) upper += weight(index);
    if (mass + upper >= top_p_mass_) {
      count = middle;
    } else {
      mass += upper;
      kept = middle;
    }
  }
  return count;
}

TokenId Sampler::draw_all(std::span<const float> logits, float inverse_temperature, std::uint64_t bits) {
  std::uint64_t total = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    std::uint64_t sum = 0;
    if ((block_max_[block] - max_) * inverse_temperature >= kWeightlessBelow) {
      for (const float logit : block_of(logits, block)) sum += weight_of((logit - max_) * inverse_temperature);
    }
    block_weight_[block] = sum;
    total += sum;
  }
  std::uint64_t left = scaled_draw(bits, total);
  std::size_t block = 0;
  while (left >= block_weight_[block]) left -= block_weight_[block++];
  std::size_t token = block * kBlock;
  for (;; ++token) {
    const std::uint64_t weight = weight_of((logits[token] - max_) * inverse_temperature);
    if (left < weight) break;
    left -= weight;
  }
  return static_cast<TokenId>(token);
}

// Draws among the tokens that rank up to and with `last`.
TokenId Sampler::draw_survivors(std::span<const float> logits, float inverse_temperature, std::uint64_t bits, Ranked last) {
  const std::size_t gathered = gather(logits, last.logit);
  std::size_t survivors = 0;
  std::uint64_t total = 0;
  for (std::size_t index = 0; index < gathered; ++index) {
    const Ranked candidate = candidates_[index];
    if (before(last, candidate)) continue;
    candidates_[survivors] = candidate;
    weights_[survivors] = weight_of((candidate.logit - max_) * inverse_temperature);
    total += weights_[survivors++];
  }
  std::uint64_t left = scaled_draw(bits, total);
  std::size_t index = 0;
  while (left >= weights_[index]) left -= weights_[index++];
  return static_cast<TokenId>(candidates_[index].token);
}

}  // namespace linnet
