#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "hub/cache_folder.h"
#include "hub/demo_models.h"
#include "hub/hub_model.h"
#include "hub/hub_name.h"
#include "hub/hub_options.h"
#include "hub/progress_bar.h"
#include "server/commands/command.h"
#include "server/commands/interrupts.h"

namespace linnet {
namespace {

void print(std::string_view text) { std::fprintf(stderr, "%.*s", static_cast<int>(text.size()), text.data()); }

Result<std::filesystem::path> get_demo(const DemoModel& model) {
  LINNET_ASSIGN(const std::filesystem::path models, models_folder());
  DemoFetcher fetcher;
  fetcher.say = [](std::string_view line) { print(std::string(line) + "\n"); };
  return fetch_demo_model(model, models, fetcher);
}

Result<std::filesystem::path> get_from_hub(const std::string& wanted) {
  LINNET_ASSIGN(const HubName name, parse_hub_name(wanted));
  // The first signal ends the fetch in good order, the second at once; what has come is kept either way.
  std::stop_source stop;
  const Interrupts interrupts([&stop](int signal) {
    if (!stop.request_stop()) std::_Exit(128 + signal);
  });
  LINNET_ASSIGN(HubOptions options, hub_options_from_environment(stop.get_token()));
  const SystemClock clock;
  ProgressBar bar(clock, ::isatty(STDERR_FILENO) != 0, print);
  options.say = [&bar](std::string_view line) { bar.say(line); };
  options.progress = [&bar](const FetchProgress& progress) { bar.update(progress); };
  return fetch_hub_model(name, options);
}

Status get(const std::string& wanted) {
  const DemoModel* model = find_demo_model(wanted);
  LINNET_ASSIGN(const std::filesystem::path path, model != nullptr ? get_demo(*model) : get_from_hub(wanted));
  std::printf("%s\n", path.c_str());
  return {};
}

}  // namespace

void add_get_command(CLI::App& root, RunCommand& run) {
  auto wanted = std::make_shared<std::string>();
  CLI::App* app = root.add_subcommand("get", "Fetch a model into the user's cache folder");
  app->add_option("MODEL", *wanted,
                  "org/name of a Hugging Face hub, with :QUANTIZATION or /file.gguf for one of several GGUF files and @REVISION; "
                  "or demo (SmolLM2 135M Instruct, 98 MB) or demo-gemma (Gemma 3 270M, 253 MB)")
      ->required();
  app->callback([wanted, &run] { run = [wanted] { return get(*wanted); }; });
}

}  // namespace linnet
