#include "engine/admission.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "engine/active_set.h"

namespace linnet {
namespace {

Error invalid(const std::string& param, const std::string& message) { return {ErrorCode::kInvalidArgument, message, param}; }

Status check_tokens(std::span<const TokenId> tokens, const std::string& param, std::int32_t vocabulary) {
  const auto outside = [vocabulary](TokenId token) {
    const auto id = static_cast<std::int32_t>(token);
    return id < 0 || id >= vocabulary;
  };
  const auto found = std::find_if(tokens.begin(), tokens.end(), outside);
  if (found == tokens.end()) return {};
  return invalid(param, param + "[" + std::to_string(found - tokens.begin()) + "] is " +
                            std::to_string(static_cast<std::int32_t>(*found)) + "; the vocabulary has ids 0 to " +
                            std::to_string(vocabulary - 1));
}

}  // namespace

namespace {

// A range of a number that must be finite.
struct Range {
  float least;
  float most;
  const char* says;
};

Status check_number(const std::string& param, float value, const Range& range) {
  if (std::isfinite(value) && value >= range.least && value <= range.most) return {};
  return invalid(param, param + " is " + std::to_string(value) + "; it must be " + range.says);
}

Status check_count(const std::string& param, std::int32_t value, std::int32_t most) {
  if (value >= 0 && value <= most) return {};
  return invalid(param, param + " is " + std::to_string(value) + "; it must be from 0 to " + std::to_string(most));
}

Status check_penalties(const SamplingParams& params) {
  constexpr std::int32_t kAny = std::numeric_limits<std::int32_t>::max();
  // Within these no logit overflows: counts stay below 2^31.
  constexpr Range kPenalty{-100, 100, "from -100 to 100 (0: off)"};
  LINNET_RETURN_IF_ERROR(
      check_number("repetition_penalty", params.repetition_penalty, {0.01F, 100, "from 0.01 to 100 (1: off)"}));
  LINNET_RETURN_IF_ERROR(check_number("presence_penalty", params.presence_penalty, kPenalty));
  LINNET_RETURN_IF_ERROR(check_number("frequency_penalty", params.frequency_penalty, kPenalty));
  LINNET_RETURN_IF_ERROR(check_count("repetition_context_size", params.repetition_context, kAny));
  LINNET_RETURN_IF_ERROR(check_count("presence_context_size", params.presence_context.value_or(0), kAny));
  LINNET_RETURN_IF_ERROR(check_count("frequency_context_size", params.frequency_context.value_or(0), kAny));
  LINNET_RETURN_IF_ERROR(check_count("min_tokens", params.min_tokens, kAny));
  return check_count("logprobs", params.logprobs.value_or(0), kTopLogprobsMax);
}

Status check_bias(const Request& request, std::int32_t vocabulary) {
  std::vector<TokenId> biased;
  for (const LogitBias& entry : request.logit_bias) {
    LINNET_RETURN_IF_ERROR(check_number("logit_bias", entry.bias, {-1000, 1000, "from -1000 to 1000"}));
    biased.push_back(entry.token);
  }
  LINNET_RETURN_IF_ERROR(check_tokens(biased, "logit_bias", vocabulary));
  std::sort(biased.begin(), biased.end());
  const auto twice = std::adjacent_find(biased.begin(), biased.end());
  if (twice == biased.end()) return {};
  return invalid("logit_bias", "logit_bias names token " + std::to_string(static_cast<std::int32_t>(*twice)) + " twice");
}

// As much of `limit` as leaves room for all choices.
Result<std::int32_t> limit_of_choices(const Request& request, std::int32_t limit, const AdmissionLimits& limits) {
  const auto prompt = static_cast<std::int32_t>(request.prompt.size());
  const BlockNeed need = blocks_needed(prompt, limit, request.choices, limits.block_tokens);
  const std::int32_t own = std::min(need.own, (limits.block_count - need.shared) / request.choices);
  const std::int32_t fitting = std::min(limit, (need.shared + own) * limits.block_tokens);
  if (fitting >= std::min(limit, prompt + 1)) return fitting;
  return Error{ErrorCode::kContextLengthExceeded,
               "This model's KV cache has room for " + std::to_string(limits.block_count * limits.block_tokens) +
                   " tokens. However, you asked for n = " + std::to_string(request.choices) + " answers to a prompt of " +
                   std::to_string(prompt) + " tokens. Please lower n, or serve with a larger --memory-budget.",
               "n"};
}

}  // namespace

Status check_sampling(const SamplingParams& params) {
  if (!std::isfinite(params.temperature) || params.temperature < 0) {
    return invalid("temperature", "temperature is " + std::to_string(params.temperature) + "; it must be 0 or a positive number");
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return invalid("top_p", "top_p is " + std::to_string(params.top_p) + "; it must be above 0 and at most 1 (1: off)");
  }
  if (!(params.min_p >= 0 && params.min_p < 1)) {
    return invalid("min_p", "min_p is " + std::to_string(params.min_p) + "; it must be at least 0 (off) and below 1");
  }
  if (params.top_k < 0) {
    return invalid("top_k", "top_k is " + std::to_string(params.top_k) + "; it must be at least 0 (off)");
  }
  LINNET_RETURN_IF_ERROR(check_number("xtc_probability", params.xtc_probability, {0, 1, "from 0 (off) to 1"}));
  LINNET_RETURN_IF_ERROR(check_number("xtc_threshold", params.xtc_threshold, {0, 0.5F, "from 0 to 0.5"}));
  return check_penalties(params);
}

Result<std::int32_t> admissible_limit(const Request& request, const AdmissionLimits& limits) {
  if (request.prompt.empty()) return invalid("prompt", "the prompt has no tokens; it must have at least one");
  if (request.choices < 1 || request.choices > limits.choices_max) {
    return invalid("n", "n is " + std::to_string(request.choices) + "; it must be from 1 to " +
                            std::to_string(limits.choices_max) + " (four times --max-rows, at most 128)");
  }
  const std::size_t prompt = request.prompt.size();
  const std::int32_t max_tokens = request.max_tokens.value_or(std::numeric_limits<std::int32_t>::max());
  if (max_tokens < 0) {
    return invalid("max_tokens", "max_tokens is " + std::to_string(max_tokens) + "; it must be at least 0");
  }
  // One token must be left for the answer, if there is to be one.
  const std::size_t needed = prompt + (max_tokens > 0 ? 1 : 0);
  if (needed > static_cast<std::size_t>(limits.context_max)) {
    return Error{
        ErrorCode::kContextLengthExceeded,
        "This model's maximum context length is " + std::to_string(limits.context_max) + " tokens. However, your prompt has " +
            std::to_string(prompt) +
            " tokens, and the answer needs room for at least one. Please reduce the length of the prompt, or serve with a "
            "larger --context.",
        "prompt"};
  }
  LINNET_RETURN_IF_ERROR(check_tokens(request.prompt, "prompt", limits.vocabulary));
  LINNET_RETURN_IF_ERROR(check_tokens(request.end_tokens, "end_tokens", limits.vocabulary));
  LINNET_RETURN_IF_ERROR(check_tokens(request.xtc_exempt, "xtc_exempt", limits.vocabulary));
  LINNET_RETURN_IF_ERROR(check_bias(request, limits.vocabulary));
  LINNET_RETURN_IF_ERROR(check_sampling(request.sampling));
  const auto prompt_tokens = static_cast<std::int32_t>(prompt);
  const std::int32_t limit = prompt_tokens + std::min(max_tokens, limits.context_max - prompt_tokens);
  return request.choices == 1 ? limit : limit_of_choices(request, limit, limits);
}

}  // namespace linnet
