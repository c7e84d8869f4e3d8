#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "hub/cache_folder.h"
#include "hub/demo_models.h"
#include "server/commands/command.h"

namespace linnet {
namespace {

Status get(const std::string& wanted) {
  const DemoModel* model = find_demo_model(wanted);
  if (model == nullptr) {
    std::string known;
    for (const DemoModel& demo : demo_models()) known += (known.empty() ? "" : ", ") + std::string(demo.alias);
    return Error{ErrorCode::kNotFound, "`linnet get` knows no model \"" + wanted + "\"; known: " + known, "MODEL"};
  }
  LINNET_ASSIGN(const std::filesystem::path models, models_folder());
  DemoFetcher fetcher;
  fetcher.say = [](std::string_view line) { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); };
  LINNET_ASSIGN(const std::filesystem::path path, fetch_demo_model(*model, models, fetcher));
  std::printf("%s\n", path.c_str());
  return {};
}

}  // namespace

void add_get_command(CLI::App& root, RunCommand& run) {
  auto wanted = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("get", "Fetch a model into the user's cache folder");
  app->add_option("MODEL", *wanted, "demo (SmolLM2 135M Instruct, 98 MB) or demo-gemma (Gemma 3 270M, 253 MB)")->required();
  app->callback([wanted, &run] { run = [wanted] { return get(*wanted); }; });
}

}  // namespace linnet
