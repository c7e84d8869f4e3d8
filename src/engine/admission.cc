#include "engine/admission.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>

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
  return {};
}

Result<std::int32_t> admissible_limit(const Request& request, const AdmissionLimits& limits) {
  if (request.prompt.empty()) return invalid("prompt", "the prompt has no tokens; it must have at least one");
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
  LINNET_RETURN_IF_ERROR(check_sampling(request.sampling));
  const auto prompt_tokens = static_cast<std::int32_t>(prompt);
  return prompt_tokens + std::min(max_tokens, limits.context_max - prompt_tokens);
}

}  // namespace linnet
