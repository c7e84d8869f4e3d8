#include <CLI/CLI.hpp>
#include <cstdio>

#include "hub/cache_folder.h"
#include "hub/local_models.h"
#include "server/commands/command.h"

namespace linnet {
namespace {

Status ls() {
  LINNET_ASSIGN(const std::filesystem::path folder, models_folder());
  const std::vector<LocalModel> models = list_models(folder);
  if (models.empty()) std::fprintf(stderr, "No models under %s. `linnet get demo` fetches a small one.\n", folder.c_str());
  for (const LocalModel& model : models) {
    std::printf("%-40s %8.1f MB  %s\n", model.name.c_str(), static_cast<double>(model.bytes) / 1e6, model.path.c_str());
  }
  return {};
}

}  // namespace

void add_ls_command(CLI::App& root, RunCommand& run) {
  CLI::App* app = root.add_subcommand("ls", "List the models on this machine");
  app->callback([&run] { run = ls; });
}

}  // namespace linnet
