// How the next token is chosen from a row's logits.
#pragma once

#include <cstdint>
#include <optional>

namespace linnet {

// Complete parameters of one request. Order of application: log-softmax, top_p, min_p, top_k, then temperature.
struct SamplingParams {
  float temperature = 1.0F;  // 0: the most likely token (ties to the lower id); else > 0
  float top_p = 1.0F;        // (0, 1]; 1: off
  float min_p = 0.0F;        // [0, 1); 0: off
  std::int32_t top_k = 0;    // 0: off
  std::uint64_t seed = 0;    // with the position of a token in the answer, all the randomness there is

  bool operator==(const SamplingParams&) const = default;
};

// What a request says about sampling; what it leaves open comes from flags, then the model's file, then SamplingParams.
struct SamplingOverrides {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<std::int32_t> top_k;
  std::optional<std::uint64_t> seed;  // absent: drawn by the server, and different each time

  bool operator==(const SamplingOverrides&) const = default;
};

}  // namespace linnet
