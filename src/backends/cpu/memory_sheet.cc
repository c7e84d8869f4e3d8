#include "backends/cpu/memory_sheet.h"

#include <algorithm>
#include <string>

#include "backends/cpu/affinity.h"
#include "backends/cpu/weight_loader.h"
#include "base/memory_budget.h"
#include "exec/sampler.h"
#include "model/architectures.h"

namespace linnet::cpu {
namespace {

constexpr std::int64_t kBlocksMax = INT32_MAX / kBlockTokens;  // positions and lengths are 32 bits

std::int64_t blocks_in(const MemoryLeft& memory, const KvLayout& layout) {
  const std::uint64_t page = Region::size_of(1);
  return std::min(static_cast<std::int64_t>(memory.bytes() / page * page / layout.block_bytes()), kBlocksMax);
}

Error context_error(std::int64_t context, const KvLayout& layout, const MemoryLeft& memory) {
  return {ErrorCode::kTooLarge,
          "a context of " + std::to_string(context) + " tokens needs " +
              format_bytes(static_cast<std::uint64_t>(context) * layout.token_bytes()) + " of KV, and " +
              format_bytes(memory.bytes()) + " are left of the memory budget; lower --context or raise --memory-budget",
          "--context"};
}

Status plan_weights(const ModelFile& file, MemorySheet& sheet, MemoryLeft& memory) {
  WeightLoader count(file, *sheet.kernels, nullptr);
  LINNET_RETURN_IF_ERROR(bind_model<Ops>(file.config(), count));
  sheet.weights = Region::size_of(count.bytes());
  sheet.token_cost = {.weight_bytes = count.bytes_per_token(),
                      .kv_bytes = static_cast<double>(sheet.kv_layout.token_bytes()),
                      .flops = 2 * count.layer_weights()};
  return memory.take(sheet.weights, "weights");
}

Status plan_context(const ModelConfig& config, const CpuExecutorOptions& options, MemorySheet& sheet, MemoryLeft& memory) {
  const KvLayout& layout = sheet.kv_layout;
  const std::int64_t wanted = options.context != 0 ? options.context : config.context_max;
  // What the memory could hold at most bounds what scratch is sized for.
  const std::int64_t context = std::min(wanted, blocks_in(memory, layout) * kBlockTokens);
  if (context < 1 || (options.context != 0 && context < wanted)) return context_error(wanted, layout, memory);
  sheet.limits = {.rows_max = options.rows_max,
                  .tokens_max = std::max(options.tokens_max, options.rows_max),
                  .samples_max = options.rows_max,
                  .context_max = static_cast<std::int32_t>(context)};
  sheet.samplers = Sampler::memory_bytes(config.vocabulary) * static_cast<std::size_t>(sheet.threads);
  LINNET_RETURN_IF_ERROR(memory.take(sheet.samplers, "samplers"));
  LINNET_ASSIGN(sheet.scratch, Ops::memory_bytes(config, sheet.limits, *sheet.kernels, sheet.threads));
  LINNET_RETURN_IF_ERROR(memory.take(sheet.scratch, "scratch"));

  const std::int64_t blocks_of_context = (context + kBlockTokens - 1) / kBlockTokens;
  const std::int64_t blocks = std::min(blocks_of_context * options.rows_max, blocks_in(memory, layout));
  if (blocks < 1 || (options.context != 0 && blocks < blocks_of_context)) return context_error(wanted, layout, memory);
  sheet.kv_blocks = static_cast<std::int32_t>(blocks);
  return memory.take(sheet.kv(), "KV blocks");
}

}  // namespace

Result<MemorySheet> plan_memory(const ModelFile& file, const CpuExecutorOptions& options) {
  const ModelConfig& config = file.config();
  if (options.context > config.context_max) {
    return Error{ErrorCode::kInvalidArgument,
                 "--context " + std::to_string(options.context) + " is more than the model was made for (" +
                     std::to_string(config.context_max) + ")",
                 "--context"};
  }
  const std::int32_t threads = options.threads > 0 ? options.threads : cpu_share().threads;
  MemorySheet sheet{.kernels = options.kernels,
                    .threads = options.pool != nullptr ? options.pool->threads() : threads,
                    .budget = options.memory_budget_bytes != 0 ? options.memory_budget_bytes : default_memory_budget(),
                    .kv_layout = {.layers = config.layers, .kv_heads = config.kv_heads, .head_dim = config.head_dim}};
  if (sheet.kernels == nullptr) {
    LINNET_ASSIGN(sheet.kernels, kernel_set_of_environment());
  }
  MemoryLeft memory(sheet.budget);
  LINNET_RETURN_IF_ERROR(plan_weights(file, sheet, memory));
  LINNET_RETURN_IF_ERROR(plan_context(config, options, sheet, memory));
  return sheet;
}

}  // namespace linnet::cpu
