#include "engine/engine_limits.h"

#include <algorithm>

namespace linnet {
namespace {

constexpr std::int32_t kChoicesMax = 128;

std::int32_t cache_blocks_of(const EngineOptions& options, const ExecutorInfo& info) {
  if (info.block_bytes == 0) return 0;
  const auto all = static_cast<std::uint64_t>(info.block_count);
  if (!options.prompt_cache_bytes) return info.block_count;
  return static_cast<std::int32_t>(std::min(*options.prompt_cache_bytes / info.block_bytes, all));
}

}  // namespace

std::int32_t rows_max_of(const EngineOptions& options, const ExecutorInfo& info) {
  return std::min({options.max_rows, info.step_rows_max, info.step_tokens_max});
}

AdmissionLimits admission_limits_of(const EngineOptions& options, const ExecutorInfo& info) {
  const auto pool_tokens = std::int64_t{info.block_tokens} * info.block_count;
  return {.vocabulary = info.vocabulary,
          .context_max = static_cast<std::int32_t>(std::min<std::int64_t>(info.context_max, pool_tokens)),
          .block_tokens = info.block_tokens,
          .block_count = info.block_count,
          .choices_max = std::min(kChoicesMax, rows_max_of(options, info) * ActiveSet::kAdmittedPerRow)};
}

ActiveLimits active_limits_of(const EngineOptions& options, const ExecutorInfo& info) {
  return {.rows_max = rows_max_of(options, info),
          .block_tokens = info.block_tokens,
          .block_count = info.block_count,
          .vocabulary = info.vocabulary,
          .cache = {.block_tokens = info.block_tokens,
                    .blocks_max = cache_blocks_of(options, info),
                    .token_cost = info.step_cost_per_token_us,
                    .token_cost_context = info.step_cost_per_token_context_us},
          .name_space = {.numerics_id = info.numerics_id, .block_tokens = info.block_tokens}};
}

PlannerLimits planner_limits_of(const EngineOptions& options, const ExecutorInfo& info) {
  return {.rows_max = rows_max_of(options, info),
          .step_tokens_max = info.step_tokens_max,
          .block_tokens = info.block_tokens,
          .gap_us = options.max_gap_ms * 1000.0,
          .cost = {.fixed_us = info.step_cost_fixed_us,
                   .per_token_us = info.step_cost_per_token_us,
                   .per_token_context_us = info.step_cost_per_token_context_us}};
}

}  // namespace linnet
