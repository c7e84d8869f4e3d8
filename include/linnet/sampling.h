// How the next token is chosen from a row's logits.
#pragma once

#include <cstdint>
#include <optional>

#include "linnet/ids.h"

namespace linnet {

// Added to one token's logit, before everything else.
struct LogitBias {
  TokenId token{};
  float bias = 0;

  bool operator==(const LogitBias&) const = default;
};

inline constexpr std::int32_t kTopLogprobsMax = 20;

// Complete parameters of one request. Order of application: logit_bias (Request), repetition, presence and frequency penalty,
// min_tokens, grammar; log-softmax, which is what logprobs report; top_p, min_p, XTC, top_k, then temperature.
struct SamplingParams {
  float temperature = 1.0F;  // 0: the most likely token (ties to the lower id), without filters; else > 0
  float top_p = 1.0F;        // (0, 1]; 1: off
  float min_p = 0.0F;        // [0, 1); 0: off
  std::int32_t top_k = 0;    // 0: off
  std::uint64_t seed = 0;    // with the position of a token in the answer, all the randomness there is

  // With this probability, at each token, all tokens more probable than the least probable one above the threshold are dropped.
  float xtc_probability = 0.0F;  // [0, 1]; 0: off
  float xtc_threshold = 0.0F;    // [0, 0.5]

  // Of each distinct token in the window a positive logit is divided, a negative one multiplied by it.
  float repetition_penalty = 1.0F;       // > 0; 1: off
  std::int32_t repetition_context = 20;  // the window: so many last tokens of prompt and answer; 0: all

  // Subtracted once for each distinct token in the window, and once for each occurrence. Window as above; absent: the whole
  // answer so far without the prompt, which is OpenAI's meaning.
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  std::optional<std::int32_t> presence_context;
  std::optional<std::int32_t> frequency_context;

  std::int32_t min_tokens = 0;           // no end token is chosen before so many tokens
  std::optional<std::int32_t> logprobs;  // report each token's logprob, and so many (0 .. kTopLogprobsMax) of the most likely

  bool operator==(const SamplingParams&) const = default;
};

// What a request says about sampling; what it leaves open comes from flags, then the model's file, then SamplingParams.
struct SamplingOverrides {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<std::int32_t> top_k;
  std::optional<std::uint64_t> seed;  // absent: drawn by the server, and different each time
  std::optional<float> xtc_probability;
  std::optional<float> xtc_threshold;
  std::optional<float> repetition_penalty;
  std::optional<std::int32_t> repetition_context;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  std::optional<std::int32_t> presence_context;
  std::optional<std::int32_t> frequency_context;
  std::optional<std::int32_t> min_tokens;
  std::optional<std::int32_t> logprobs;

  bool operator==(const SamplingOverrides&) const = default;
};

}  // namespace linnet
