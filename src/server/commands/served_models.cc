#include "server/commands/served_models.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <utility>

#include "base/log.h"
#include "base/memory_budget.h"
#include "linnet/text_engine.h"
#include "runtime/load.h"
#include "runtime/model_outline.h"

namespace linnet {
namespace {

std::string describe(const ModelCard& card) {
  return card.id + " (" + card.architecture + "), " + card.backend + " backend, " + card.kernels + " kernels, " +
         std::to_string(card.threads) + " threads, context " + std::to_string(card.context);
}

Result<std::unique_ptr<TextEngine>> load_described(const LoadOptions& options, cpu::Pool* pool) {
  LINNET_ASSIGN(std::unique_ptr<TextEngine> engine, load_model(options, pool));
  log_info(describe(engine->model()));
  return engine;
}

// A lone model keeps the budget it was given, which may be the backend's own choice, and its load says what does not fit; several
// share one budget.
ModelEntry entry_of(ModelOutline outline, const LoadOptions& options, cpu::Pool* pool, bool alone) {
  return {.id = std::move(outline.id),
          .least_bytes = alone ? 0 : outline.least_bytes,
          .load = [options, pool, alone](std::uint64_t budget) {
            LoadOptions granted = options;
            if (!alone) granted.memory_budget_bytes = budget;
            return load_described(granted, pool);
          }};
}

bool names(const ModelEntry& entry, const std::string& name) {
  return entry.id == name || std::find(entry.aliases.begin(), entry.aliases.end(), name) != entry.aliases.end();
}

}  // namespace

void add_served_model_flags(CLI::App& app, ServedModelFlags& flags) {
  app.add_option("MODELS", flags.more, "Further models: requests name one; each is loaded when first asked for");
  app.add_option("--pin", flags.pinned, "Never unload this model to make room or when idle (repeatable)")
      ->delimiter(',')
      ->envname("LINNET_PIN");
  app.add_option("--idle-unload", flags.idle_unload_s, "Unload a model that nobody used for so many seconds; 0: never")
      ->check(CLI::NonNegativeNumber)
      ->envname("LINNET_IDLE_UNLOAD");
}

ModelSetOptions model_set_options(const ModelFlags& model, const ServedModelFlags& flags) {
  const std::uint64_t asked = model.options.memory_budget_bytes;
  ModelSetOptions options{.memory_budget = asked != 0 ? asked : default_memory_budget()};
  if (flags.idle_unload_s > 0) options.idle_time = std::chrono::seconds(flags.idle_unload_s);
  return options;
}

Status add_models(const ModelFlags& model, const ServedModelFlags& flags, cpu::Pool* pool, ModelSet& models) {
  std::vector<std::string> typed = {model.model};
  typed.insert(typed.end(), flags.more.begin(), flags.more.end());
  std::vector<ModelEntry> entries;
  for (const std::string& name : typed) {
    ModelFlags one = model;
    one.model = name;
    LINNET_ASSIGN(const LoadOptions options, load_options(one));
    LINNET_ASSIGN(ModelOutline outline, outline_model(options));
    ModelEntry entry = entry_of(std::move(outline), options, pool, typed.size() == 1);
    if (std::any_of(entries.begin(), entries.end(), [&](const ModelEntry& other) { return other.id == entry.id; })) {
      return Error{ErrorCode::kInvalidArgument, "two of the models are called " + entry.id + "; serve one of them", "MODEL"};
    }
    if (name != entry.id) entry.aliases.push_back(name);
    entries.push_back(std::move(entry));
  }
  for (const std::string& pinned : flags.pinned) {
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const ModelEntry& one) { return names(one, pinned); });
    if (entry == entries.end()) {
      return Error{ErrorCode::kInvalidArgument, "--pin " + pinned + " is none of the models", "--pin"};
    }
    entry->pinned = true;
  }
  for (ModelEntry& entry : entries) models.add(std::move(entry));
  return {};
}

}  // namespace linnet
