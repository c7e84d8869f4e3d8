// One row's logits become a token: written once for all backends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/logit_rules.h"
#include "exec/row_context.h"
#include "linnet/event.h"
#include "linnet/ids.h"
#include "linnet/sampling.h"

namespace linnet {

// Owns scratch for one vocabulary; one thread at a time. Nothing allocates after construction.
//
// LogitRules go first. Tokens are ranked by logit, ties to the lower id. All filters look at the same distribution (temperature
// 1, nothing renormalised), and some token survives them all:
//   top_p  (0 < p < 1)  keeps tokens whose probability, summed from the least likely token up to and with their own, exceeds 1 -
//   p min_p  (p > 0)      keeps tokens with log-probability >= that of the most likely one + ln p xtc                 with its
//   probability, drops tokens more likely than the least likely one that is above its threshold top_k  (k > 0)      keeps the
//   first k that are left
// But for xtc each filter keeps a beginning of the ranking, so without it the survivors are the shortest of three beginnings.
// Temperature comes last: 0 takes the first of the ranking; else one is drawn with probability ~ exp(logit / temperature).
//
// Weights exp(logit - max) are rounded to integers in units of 2^-40 and summed as such. Sums of integers do not depend on their
// order: neither on vector width nor on how survivors are searched. The draw inverts the cumulative sum in the order of token
// ids at (bits * total) >> 64, `bits` being the 64 random bits of (seed, step). Whether xtc acts is decided by another stream.
class Sampler {
 public:
  explicit Sampler(std::int32_t vocabulary);
  // What one takes for a vocabulary, about.
  static constexpr std::size_t memory_bytes(std::int32_t vocabulary) {
    return static_cast<std::size_t>(vocabulary) * (sizeof(Ranked) + sizeof(std::uint64_t) + 1) +
           LogitRules::memory_bytes(vocabulary);
  }

  // `logits`: one float for each token of the vocabulary; -inf means never. `step`: index of the token in the answer.
  // Nothing if the row failed: a NaN, a +inf, or no logit above -inf.
  std::optional<TokenId> sample(std::span<const float> logits, const SamplingParams& params, const RowContext& context,
                                std::uint64_t step);
  std::optional<TokenId> sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t step) {
    return sample(logits, params, {}, step);
  }
  // Of a token in the distribution that the last sample() chose from, which did not fail; its logits are still there.
  // `top_count`: 0 .. kTopLogprobsMax.
  TokenLogprobs logprobs(TokenId token, std::int32_t top_count);

 private:
  struct Ranked {
    float logit;
    std::int32_t token;
  };
  static bool before(const Ranked& a, const Ranked& b) { return a.logit != b.logit ? a.logit > b.logit : a.token < b.token; }

  bool scan(std::span<const float> logits);
  std::uint64_t total_weight(std::span<const float> logits, float scale);
  TokenId most_likely(std::span<const float> logits) const;
  Ranked last_survivor(std::span<const float> logits, const SamplingParams& params);
  Ranked last_of_top_k(std::span<const float> logits, std::size_t top_k);
  Ranked last_of_top_p(std::span<const float> logits, float top_p);
  std::uint64_t fill_buckets(std::span<const float> logits);
  std::size_t gather(std::span<const float> logits, float floor);
  std::size_t gather_bucket(std::span<const float> logits, std::size_t bucket);
  std::size_t shortest_beginning(std::size_t count, std::uint64_t mass);
  TokenId draw_all(std::span<const float> logits, float scale, std::uint64_t bits);
  std::size_t gather_survivors(std::span<const float> logits, Ranked last);
  std::size_t drop_top_choices(std::size_t count, const SamplingParams& params, const RowContext& context);
  TokenId draw_candidates(std::size_t count, float scale, std::uint64_t bits);

  LogitRules rules_;
  std::span<const float> logits_;  // what the last sample() chose from
  float max_ = 0;
  std::vector<float> block_max_;              // the largest logit of each block of logits
  std::vector<float> block_order_;            // scratch for selecting among block_max_
  std::vector<std::uint64_t> block_weight_;   // sum of weights of each block
  std::vector<std::uint64_t> bucket_weight_;  // sums of weights by distance from max_; four partial sums for each bucket
  std::vector<Ranked> candidates_;
  std::vector<std::uint64_t> weights_;  // of candidates_
};

}  // namespace linnet
