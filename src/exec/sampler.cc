#include "exec/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "exec/token_weight.h"

namespace linnet {
namespace {

constexpr std::size_t kBlock = 64;  // logits
constexpr float kBucketsPerUnit = 16;
constexpr std::size_t kBuckets = 480;  // of distances 0 .. -kWeightlessBelow from the largest logit; one more for what is beyond
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t kXtcStream = 1;  // of random bits

// ln x for x > 0, the same bits on every machine: x = m * 2^e, ln m = 2 atanh((m - 1) / (m + 1)).
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

// 0 <= u < 1.
double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11U) * 0x1p-53; }

std::span<const float> block_of(std::span<const float> logits, std::size_t block) {
  return logits.subspan(block * kBlock, std::min(kBlock, logits.size() - block * kBlock));
}

// The largest of `values`; `finite` becomes false if one of them is NaN or +inf.
float largest(std::span<const float> values, bool& finite) {
  constexpr std::size_t kVectors = 4;  // independent chains
  std::array<Float4, kVectors> best;
  best.fill(Float4{} - kInfinity);
  Int4 bad{};
  std::size_t index = 0;
  for (; index + 4 * kVectors <= values.size(); index += 4 * kVectors) {
    for (std::size_t vector = 0; vector < kVectors; ++vector) {
      const Float4 loaded = load4(&values[index + 4 * vector]);
      best[vector] = loaded > best[vector] ? loaded : best[vector];
      bad |= ~(loaded < kInfinity);
    }
  }
  float max = -kInfinity;
  for (const Float4& vector : best) {
    for (int lane = 0; lane < 4; ++lane) max = std::max(max, vector[lane]);
  }
  finite = finite && (bad[0] | bad[1] | bad[2] | bad[3]) == 0;
  for (; index < values.size(); ++index) {
    max = values[index] > max ? values[index] : max;
    finite = finite && values[index] < kInfinity;
  }
  return max;
}

// Sum of the weights of (logit - max) * scale.
std::uint64_t sum_of_weights(std::span<const float> logits, float max, float scale) {
  Weight2 sums{};
  std::size_t index = 0;
  for (; index + 4 <= logits.size(); index += 4) {
    const Weight4 weights = weights_of((load4(&logits[index]) - max) * scale);
    sums += weights.low + weights.high;
  }
  std::uint64_t sum = sums[0] + sums[1];
  for (; index < logits.size(); ++index) sum += weight_of((logits[index] - max) * scale);
  return sum;
}

// Falls with the logit, never rises.
std::size_t bucket_of(float distance) {
  const float bucket = distance * kBucketsPerUnit;
  return static_cast<std::size_t>(bucket < static_cast<float>(kBuckets) ? bucket : static_cast<float>(kBuckets));
}

}  // namespace

Sampler::Sampler(std::int32_t vocabulary) : rules_(vocabulary) {
  CHECK(vocabulary >= 1 && vocabulary <= (1 << 20));
  const auto tokens = static_cast<std::size_t>(vocabulary);
  const std::size_t blocks = (tokens + kBlock - 1) / kBlock;
  block_max_.resize(blocks);
  block_order_.resize(blocks);
  block_weight_.resize(blocks);
  bucket_weight_.resize(4 * (kBuckets + 1));
  candidates_.resize(tokens);
  weights_.resize(tokens);
}

std::optional<TokenId> Sampler::sample(std::span<const float> logits, const SamplingParams& params, const RowContext& context,
                                       std::uint64_t step) {
  CHECK(logits.size() == candidates_.size());
  logits_ = rules_.apply(logits, params, context, step);
  if (!scan(logits_)) return std::nullopt;
  const bool xtc = params.xtc_probability > 0 && uniform(random_bits(params.seed, step, kXtcStream)) < params.xtc_probability;
  if (params.temperature == 0 || (params.top_k == 1 && !xtc)) return most_likely(logits_);
  // Neither infinite nor 0: their products with 0 and infinity would be NaN.
  using Limits = std::numeric_limits<float>;
  const float scale = std::clamp(1 / params.temperature, Limits::min(), Limits::max());
  const std::uint64_t bits = random_bits(params.seed, step);
  if (!xtc && params.top_p >= 1 && params.min_p <= 0 && params.top_k <= 0) return draw_all(logits_, scale, bits);
  SamplingParams before_xtc = params;
  if (xtc) before_xtc.top_k = 0;
  std::size_t count = gather_survivors(logits_, last_survivor(logits_, before_xtc));
  if (xtc) count = drop_top_choices(count, params, context);
  return draw_candidates(count, scale, bits);
}

TokenLogprobs Sampler::logprobs(TokenId token, std::int32_t top_count) {
  CHECK(top_count >= 0 && top_count <= kTopLogprobsMax && index_of(token) < logits_.size());
  const double log_total = natural_log(static_cast<double>(total_weight(logits_, 1)) / kWeightOfOne);
  const auto logprob_of = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(max_) - log_total);
  };
  TokenLogprobs result{.logprob = logprob_of(logits_[index_of(token)]),
                       .top_count = std::min(top_count, static_cast<std::int32_t>(logits_.size()))};
  if (result.top_count == 0) return result;
  const auto wanted = static_cast<std::size_t>(result.top_count);
  const std::size_t count = gather_survivors(logits_, last_of_top_k(logits_, wanted));
  CHECK(count == wanted);
  std::sort(candidates_.begin(), candidates_.begin() + result.top_count, before);
  for (std::size_t rank = 0; rank < count; ++rank) {
    result.top[rank] = {.token = TokenId{candidates_[rank].token}, .logprob = logprob_of(candidates_[rank].logit)};
  }
  return result;
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

// The end of the shortest of the beginnings that the filters keep.
Sampler::Ranked Sampler::last_survivor(std::span<const float> logits, const SamplingParams& params) {
  constexpr std::int32_t kAnyToken = std::numeric_limits<std::int32_t>::max();
  Ranked last{.logit = -kInfinity, .token = kAnyToken};
  if (params.top_p > 0 && params.top_p < 1) last = last_of_top_p(logits, params.top_p);
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < logits.size()) {
    last = std::min(last, last_of_top_k(logits, static_cast<std::size_t>(params.top_k)), before);
  }
  if (params.min_p > 0) {
    const float floor = max_ + static_cast<float>(natural_log(static_cast<double>(params.min_p)));
    last = std::min(last, Ranked{.logit = std::min(floor, max_), .token = kAnyToken}, before);
  }
  return last;
}

Sampler::Ranked Sampler::last_of_top_k(std::span<const float> logits, std::size_t top_k) {
  // At least k logits are as large as the k-th largest of the blocks' largest.
  float floor = -kInfinity;
  if (top_k <= block_max_.size()) {
    std::copy(block_max_.begin(), block_max_.end(), block_order_.begin());
    const auto kth = block_order_.begin() + static_cast<std::ptrdiff_t>(top_k - 1);
    std::nth_element(block_order_.begin(), kth, block_order_.end(), std::greater<>());
    floor = *kth;
  }
  const auto count = static_cast<std::ptrdiff_t>(gather(logits, floor));
  const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(top_k - 1);
  std::nth_element(candidates_.begin(), last, candidates_.begin() + count, before);
  return *last;
}

// What top_p drops weighs at most t = (1 - p) * total, so it keeps the shortest beginning that weighs total - floor(t).
Sampler::Ranked Sampler::last_of_top_p(std::span<const float> logits, float top_p) {
  const std::uint64_t total = fill_buckets(logits);
  const double dropped = (1.0 - static_cast<double>(top_p)) * static_cast<double>(total);
  const std::uint64_t mass = total - std::min(total - 1, static_cast<std::uint64_t>(dropped));
  std::uint64_t above = 0;
  std::size_t bucket = 0;
  for (;; ++bucket) {
    const std::uint64_t* sums = &bucket_weight_[4 * bucket];
    const std::uint64_t weight = sums[0] + sums[1] + sums[2] + sums[3];
    if (above + weight >= mass) break;
    above += weight;
  }
  const std::size_t kept = shortest_beginning(gather_bucket(logits, bucket), mass - above);
  return *std::max_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(kept), before);
}

// Sums weights by bucket; returns their total.
std::uint64_t Sampler::fill_buckets(std::span<const float> logits) {
  std::fill(bucket_weight_.begin(), bucket_weight_.end(), 0);
  constexpr auto kBeyond = static_cast<float>(kBuckets);
  const auto add = [&](Float4 values) {
    const Weight4 weights = weights_of(values - max_);
    const Float4 buckets = (max_ - values) * kBucketsPerUnit;
    const Int4 bucket = __builtin_convertvector(buckets < kBeyond ? buckets : Float4{} + kBeyond, Int4);
    bucket_weight_[4 * static_cast<std::size_t>(bucket[0])] += weights.low[0];
    bucket_weight_[4 * static_cast<std::size_t>(bucket[1]) + 1] += weights.low[1];
    bucket_weight_[4 * static_cast<std::size_t>(bucket[2]) + 2] += weights.high[0];
    bucket_weight_[4 * static_cast<std::size_t>(bucket[3]) + 3] += weights.high[1];
  };
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (block_max_[block] - max_ < kWeightlessBelow) continue;
    const std::span<const float> values = block_of(logits, block);
    std::size_t index = 0;
    for (; index + 4 <= values.size(); index += 4) add(load4(&values[index]));
    for (; index < values.size(); ++index) add(Float4{values[index], -kInfinity, -kInfinity, -kInfinity});
  }
  return std::accumulate(bucket_weight_.begin(), bucket_weight_.end(), std::uint64_t{0});
}

// Candidates are the tokens whose logit is at least `floor`, in the order of ids; returns how many there are.
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

// The same for the tokens of one bucket.
std::size_t Sampler::gather_bucket(std::span<const float> logits, std::size_t bucket) {
  std::size_t count = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (bucket_of(max_ - block_max_[block]) > bucket) continue;
    const std::span<const float> values = block_of(logits, block);
    for (std::size_t offset = 0; offset < values.size(); ++offset) {
      candidates_[count] = {.logit = values[offset], .token = static_cast<std::int32_t>(block * kBlock + offset)};
      count += bucket_of(max_ - values[offset]) == bucket ? 1U : 0U;
    }
  }
  return count;
}

// Moves the shortest beginning that weighs `mass`, of the first `count` candidates' own ranking, to the front, and returns its
// length. They weigh as much together. Halves the range that is searched, so nothing is sorted.
std::size_t Sampler::shortest_beginning(std::size_t count, std::uint64_t mass) {
  const auto at = [&](std::size_t index) { return candidates_.begin() + static_cast<std::ptrdiff_t>(index); };
  std::size_t kept = 0;  // candidates [0, kept) are part of it
  while (count - kept > 1) {
    const std::size_t middle = kept + (count - kept) / 2;
    std::nth_element(at(kept), at(middle), at(count), before);
    std::uint64_t upper = 0;
    for (std::size_t index = kept; index < middle; ++index) upper += weight_of(candidates_[index].logit - max_);
    if (upper >= mass) {
      count = middle;
    } else {
      mass -= upper;
      kept = middle;
    }
  }
  return count;
}

// Fills block_weight_; their sum.
std::uint64_t Sampler::total_weight(std::span<const float> logits, float scale) {
  std::uint64_t total = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    const bool heavy = (block_max_[block] - max_) * scale >= kWeightlessBelow;
    block_weight_[block] = heavy ? sum_of_weights(block_of(logits, block), max_, scale) : 0;
    total += block_weight_[block];
  }
  return total;
}

TokenId Sampler::draw_all(std::span<const float> logits, float scale, std::uint64_t bits) {
  std::uint64_t left = scaled_draw(bits, total_weight(logits, scale));
  std::size_t block = 0;
  while (left >= block_weight_[block]) left -= block_weight_[block++];
  for (std::size_t token = block * kBlock;; ++token) {
    const std::uint64_t weight = weight_of((logits[token] - max_) * scale);
    if (left < weight) return static_cast<TokenId>(token);
    left -= weight;
  }
}

// Candidates are the tokens that rank up to and with `last`, in the order of ids; how many.
std::size_t Sampler::gather_survivors(std::span<const float> logits, Ranked last) {
  const std::size_t gathered = gather(logits, last.logit);
  std::size_t survivors = 0;
  for (std::size_t index = 0; index < gathered; ++index) {
    const Ranked candidate = candidates_[index];
    candidates_[survivors] = candidate;
    survivors += before(last, candidate) ? 0U : 1U;
  }
  return survivors;
}

// xtc, then top_k, of the first `count` candidates in the order of ids, which they keep; how many are left.
std::size_t Sampler::drop_top_choices(std::size_t count, const SamplingParams& params, const RowContext& context) {
  const auto end_of = [this](std::size_t size) { return candidates_.begin() + static_cast<std::ptrdiff_t>(size); };
  const double threshold = static_cast<double>(params.xtc_threshold) * static_cast<double>(total_weight(logits_, 1));
  float least_above = kInfinity;
  for (std::size_t index = 0; index < count; ++index) {
    const float logit = candidates_[index].logit;
    if (static_cast<double>(weight_of(logit - max_)) > threshold) least_above = std::min(least_above, logit);
  }
  const auto is_among = [](std::int32_t token, std::span<const TokenId> tokens) {
    return std::find(tokens.begin(), tokens.end(), TokenId{token}) != tokens.end();
  };
  const auto dropped = [&](const Ranked& candidate) {
    return candidate.logit > least_above && !is_among(candidate.token, context.end_tokens) &&
           !is_among(candidate.token, context.xtc_exempt);
  };
  count = static_cast<std::size_t>(std::remove_if(candidates_.begin(), end_of(count), dropped) - candidates_.begin());
  const auto top_k = static_cast<std::size_t>(std::max(params.top_k, 0));
  if (top_k == 0 || top_k >= count) return count;
  std::nth_element(candidates_.begin(), end_of(top_k - 1), end_of(count), before);
  std::sort(candidates_.begin(), end_of(top_k), [](const Ranked& a, const Ranked& b) { return a.token < b.token; });
  return top_k;
}

// Draws among the first `count` candidates, which are in the order of ids.
TokenId Sampler::draw_candidates(std::size_t count, float scale, std::uint64_t bits) {
  // The most likely may be gone, and what is left too light beside it.
  float max = -kInfinity;
  for (std::size_t index = 0; index < count; ++index) max = std::max(max, candidates_[index].logit);
  std::uint64_t total = 0;
  for (std::size_t index = 0; index < count; ++index) {
    weights_[index] = weight_of((candidates_[index].logit - max) * scale);
    total += weights_[index];
  }
  std::uint64_t left = scaled_draw(bits, total);
  std::size_t index = 0;
  while (left >= weights_[index]) left -= weights_[index++];
  return static_cast<TokenId>(candidates_[index].token);
}

}  // namespace linnet
