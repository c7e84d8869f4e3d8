#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "backends/cpu/memory_sheet.h"
#include "backends/cpu/probe.h"
#include "base/memory_budget.h"
#include "server/commands/command.h"
#include "server/commands/model_flags.h"
#include "weights/model_file.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;

struct FitFlags {
  ModelFlags model;
  bool json = false;
};

cpu::CpuExecutorOptions executor_options(const LoadOptions& options) {
  return {.threads = options.threads,
          .pin_threads = options.pin_threads,
          .context = options.context,
          .rows_max = options.engine.max_rows,
          .memory_budget_bytes = options.memory_budget_bytes};
}

// Tokens of the longest sequence that the budget lets in; nothing but headers is read.
Result<std::int32_t> longest_context(const ModelFile& file, cpu::CpuExecutorOptions options) {
  options.context = 0;
  LINNET_ASSIGN(const cpu::MemorySheet sheet, cpu::plan_memory(file, options));
  return std::min(sheet.limits.context_max, sheet.kv_blocks * cpu::kBlockTokens);
}

Json describe(const ModelFile& file, const cpu::MemorySheet& sheet, std::int32_t longest) {
  const std::int32_t context = std::min(sheet.limits.context_max, longest);
  const cpu::TokenCost& cost = sheet.token_cost;
  const double gb_s = cpu::probe_machine(sheet.threads, sheet.kernels->name, cost.weight_bytes).bandwidth_gb_s;
  const auto tok_s = [&](std::int32_t tokens) { return gb_s * 1e9 / (cost.weight_bytes + cost.kv_bytes * tokens); };
  return {{"model", file.name()},
          {"architecture", file.config().architecture},
          {"backend", "cpu"},
          {"kernels", sheet.kernels->name},
          {"threads", sheet.threads},
          {"memory",
           {{"budget_bytes", sheet.budget},
            {"weights_bytes", sheet.weights},
            {"scratch_bytes", sheet.scratch + sheet.samplers},
            {"kv_bytes", sheet.kv()},
            {"left_bytes", sheet.budget - sheet.total()}}},
          {"kv", Json::array({{{"kind", "full"},
                               {"layers", sheet.kv_layout.layers},
                               {"format", "f16"},
                               {"bytes_per_token", sheet.kv_layout.token_bytes()}}})},
          {"context", {{"model_max", file.config().context_max}, {"longest", longest}, {"served", context}}},
          {"rows", {{"max", sheet.limits.rows_max}, {"at_context", sheet.rows_that_fit(context)}}},
          {"speed",
           {{"bandwidth_gb_s", gb_s},
            {"bytes_per_token", cost.weight_bytes},
            {"limit_tok_s", tok_s(0)},
            {"limit_tok_s_at_context", tok_s(context)}}}};
}

void print_sheet(const Json& sheet) {
  const auto text = [](const Json& value) { return value.get<std::string>(); };
  const auto number = [](const Json& value) { return value.get<int>(); };
  const auto size = [](const Json& value) { return format_bytes(value.get<std::uint64_t>()); };
  const Json& memory = sheet["memory"];
  std::printf("%s (%s), %s backend, %s kernels, %d threads\n", text(sheet["model"]).c_str(), text(sheet["architecture"]).c_str(),
              text(sheet["backend"]).c_str(), text(sheet["kernels"]).c_str(), number(sheet["threads"]));
  std::printf("memory budget        %s\n", size(memory["budget_bytes"]).c_str());
  std::printf("  weights            %s\n", size(memory["weights_bytes"]).c_str());
  std::printf("  scratch            %s\n", size(memory["scratch_bytes"]).c_str());
  std::printf("  KV                 %s\n", size(memory["kv_bytes"]).c_str());
  std::printf("  left               %s\n", size(memory["left_bytes"]).c_str());
  for (const Json& kind : sheet["kv"]) {
    std::printf("KV per token         %s in %d %s layers, %s\n", size(kind["bytes_per_token"]).c_str(), number(kind["layers"]),
                text(kind["kind"]).c_str(), text(kind["format"]).c_str());
  }
  const Json& context = sheet["context"];
  std::printf("longest context      %d tokens within the budget (the model: %d)\n", number(context["longest"]),
              number(context["model_max"]));
  std::printf("rows that fit        %d of %d tokens each (--max-rows %d)\n", number(sheet["rows"]["at_context"]),
              number(context["served"]), number(sheet["rows"]["max"]));
  const Json& speed = sheet["speed"];
  std::printf("decode at most       %.0f tok/s at the start, %.0f at %d tokens (%.1f GB/s here, now)\n",
              speed["limit_tok_s"].get<double>(), speed["limit_tok_s_at_context"].get<double>(), number(context["served"]),
              speed["bandwidth_gb_s"].get<double>());
}

Status fit(const FitFlags& flags) {
  LINNET_ASSIGN(const LoadOptions options, load_options(flags.model));
  if (options.backend == BackendKind::kMlx || options.device == DeviceKind::kGpu) {
    return Error{ErrorCode::kUnsupported, "fit knows the cpu backend's memory alone; leave out --backend mlx and --device gpu",
                 "--backend"};
  }
  LINNET_ASSIGN(const std::unique_ptr<ModelFile> file, open_model_file(options.model));
  const cpu::CpuExecutorOptions asked = executor_options(options);
  LINNET_ASSIGN(const std::int32_t longest, longest_context(*file, asked));
  LINNET_ASSIGN(const cpu::MemorySheet sheet, cpu::plan_memory(*file, asked));
  const Json described = describe(*file, sheet, longest);
  if (flags.json) {
    std::printf("%s\n", described.dump().c_str());
  } else {
    print_sheet(described);
  }
  return {};
}

}  // namespace

void add_fit_command(CLI::App& root, RunCommand& run) {
  auto flags = std::make_shared<FitFlags>();
  CLI::App* app = root.add_subcommand("fit", "Say from a model's headers what memory it takes here, and how fast it can be");
  add_model_flags(*app, flags->model);
  app->add_flag("--json", flags->json, "One JSON object instead of a sheet");
  app->callback([flags, &run] { run = [flags] { return fit(*flags); }; });
}

}  // namespace linnet
