// One row's logits become a token: written once for all backends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "linnet/ids.h"
#include "linnet/sampling.h"

namespace linnet {

// Owns scratch for one vocabulary; one thread at a time. Nothing allocates after construction.
//
// Tokens are ranked by logit, ties to the lower id. Each filter keeps the first tokens of that ranking; all look at the same
// distribution (temperature 1, nothing renormalised), so the survivors are the shortest of the three beginnings, and never empty:
//   top_p  (0 < p < 1)  tokens whose probability, summed from the least likely token up to and with their own, exceeds 1 - p
//   min_p  (p > 0)      tokens with log-probability >= that of the most likely one + ln p
//   top_k  (k > 0)      the first k
// Temperature comes last: 0 takes the first of the ranking; else one is drawn with probability ~ exp(logit / temperature).
//
// Weights exp(logit - max) are rounded to integers in units of 2^-40 and summed as such. Sums of integers do not depend on their
// order: neither on vector width nor on how survivors are searched. The draw inverts the cumulative sum in the order of token
// ids at (bits * total) >> 64, `bits` being the 64 random bits of (seed, step).
class Sampler {
 public:
  explicit Sampler(std::int32_t vocabulary);
  // What one takes for a vocabulary, about.
  static constexpr std::size_t memory_bytes(std::int32_t vocabulary) {
    return static_cast<std::size_t>(vocabulary) * (sizeof(Ranked) + sizeof(std::uint64_t) + 1);
  }

  // `logits`: one float for each token of the vocabulary; -inf means never. `step`: index of the token in the answer.
  // Nothing if the row failed: a NaN, a +inf, or no logit above -inf.
  std::optional<TokenId> sample(std::span<const float> logits, const SamplingParams& params, std::uint64_t step);

 private:
  struct Ranked {
    float logit;
    std::int32_t token;
  };
  static bool before(const Ranked& a, const Ranked& b) { return a.logit != b.logit ? a.logit > b.logit : a.token < b.token; }

  bool scan(std::span<const float> logits);
  TokenId most_likely(std::span<const float> logits) const;
  Ranked last_survivor(std::span<const float> logits, const SamplingParams& params);
  Ranked last_of_top_k(std::span<const float> logits, std::size_t top_k);
  Ranked last_of_top_p(std::span<const float> logits, float top_p);
  std::uint64_t fill_buckets(std::span<const float> logits);
  std::size_t gather(std::span<const float> logits, float floor);
  std::size_t gather_bucket(std::span<const float> logits, std::size_t bucket);
  std::size_t shortest_beginning(std::size_t count, std::uint64_t mass);
  TokenId draw_all(std::span<const float> logits, float scale, std::uint64_t bits);
  TokenId draw_survivors(std::span<const float> logits, float scale, std::uint64_t bits, Ranked last);

  float max_ = 0;
  std::vector<float> block_max_;              // the largest logit of each block of logits
  std::vector<float> block_order_;            // scratch for selecting among block_max_
  std::vector<std::uint64_t> block_weight_;   // sum of weights of each block
  std::vector<std::uint64_t> bucket_weight_;  // sums of weights by distance from max_; four partial sums for each bucket
  std::vector<Ranked> candidates_;
  std::vector<std::uint64_t> weights_;  // of candidates_
};

}  // namespace linnet
