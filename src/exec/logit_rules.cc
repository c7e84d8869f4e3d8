#include "exec/logit_rules.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/check.h"

namespace linnet {
namespace {

// A logit that is not finite stays so: it says that the row failed.
void bar_token(float& logit) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (logit < kInfinity) logit = -kInfinity;
}

std::span<const TokenId> last_of(std::span<const TokenId> tokens, std::size_t count) {
  return tokens.last(std::min(count, tokens.size()));
}

// `context` = 0 means all of it.
std::span<const TokenId> window_of(std::span<const TokenId> history, std::int32_t context) {
  return context == 0 ? history : last_of(history, static_cast<std::size_t>(context));
}

std::span<const TokenId> window_or_answer(std::span<const TokenId> history, std::optional<std::int32_t> context,
                                          std::uint64_t step) {
  return context ? window_of(history, *context) : last_of(history, static_cast<std::size_t>(step));
}

}  // namespace

LogitRules::LogitRules(std::int32_t vocabulary) {
  CHECK(vocabulary >= 1);
  changed_.resize(static_cast<std::size_t>(vocabulary));
  counts_.resize(static_cast<std::size_t>(vocabulary));
}

std::span<const float> LogitRules::apply(std::span<const float> logits, const SamplingParams& params, const RowContext& context,
                                         std::uint64_t step) {
  CHECK(logits.size() == changed_.size());
  const bool penalized = params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
  const bool too_early = !context.end_tokens.empty() && step < static_cast<std::uint64_t>(std::max(params.min_tokens, 0));
  if (context.logit_bias.empty() && !penalized && !too_early && context.mask.empty()) return logits;
  std::copy(logits.begin(), logits.end(), changed_.begin());
  for (const LogitBias& bias : context.logit_bias) changed_[index_of(bias.token)] += bias.bias;
  if (penalized) penalize(params, context.history, step);
  if (too_early) {
    for (const TokenId token : context.end_tokens) bar_token(changed_[index_of(token)]);
  }
  if (!context.mask.empty()) bar(context.mask);
  return changed_;
}

// Calls change(logit, count) once for each distinct token of `window`.
template <class Change>
void LogitRules::for_each_in(std::span<const TokenId> window, const Change& change) {
  for (const TokenId token : window) ++counts_[index_of(token)];
  for (const TokenId token : window) {
    std::int32_t& count = counts_[index_of(token)];
    if (count > 0) change(changed_[index_of(token)], static_cast<float>(count));
    count = 0;
  }
}

void LogitRules::penalize(const SamplingParams& params, std::span<const TokenId> history, std::uint64_t step) {
  if (const float penalty = params.repetition_penalty; penalty != 1) {
    for_each_in(window_of(history, params.repetition_context),
                [&](float& logit, float) { logit = logit < 0 ? logit * penalty : logit / penalty; });
  }
  if (const float penalty = params.presence_penalty; penalty != 0) {
    for_each_in(window_or_answer(history, params.presence_context, step), [&](float& logit, float) { logit -= penalty; });
  }
  if (const float penalty = params.frequency_penalty; penalty != 0) {
    for_each_in(window_or_answer(history, params.frequency_context, step),
                [&](float& logit, float count) { logit -= penalty * count; });
  }
}

void LogitRules::bar(std::span<const std::uint32_t> mask) {
  constexpr std::size_t kWordBits = 32;
  for (std::size_t token = 0; token < changed_.size(); ++token) {
    const std::size_t word = token / kWordBits;
    const bool allowed = word < mask.size() && ((mask[word] >> (token % kWordBits)) & 1U) != 0;
    if (!allowed) bar_token(changed_[token]);
  }
}

}  // namespace linnet
