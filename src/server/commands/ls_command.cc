#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "hub/local_models.h"
#include "server/commands/command.h"
#include "weights/model_summary.h"

namespace linnet {
namespace {

// Headers are read for so long; the models after that are listed by their names alone.
constexpr std::chrono::seconds kReadingMax{5};

// "llama, 134.5 M, Q4_1", or what is wrong with it.
std::string description(const std::string& path) {
  const Result<ModelSummary> summary = summarize_model(path);
  if (!summary.ok()) return "broken: " + summary.error().message;
  std::string text = summary->architecture;
  if (summary->config) {
    char parameters[64];
    std::snprintf(parameters, sizeof parameters, ", %.1f M", static_cast<double>(summary->parameters) / 1e6);
    text += parameters;
  }
  if (!summary->formats.empty()) text += ", " + summary->formats[0].format;
  if (!summary->unsupported.empty()) text += ", does not run here (`linnet inspect` says why)";
  return text;
}

// Words out of files of strangers stay in their line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
  return text;
}

Status ls() {
  const ModelFolders folders = ModelFolders::of_environment();
  const std::vector<LocalModel> models = list_models(folders);
  if (models.empty()) {
    std::fprintf(stderr, "No models under %s and %s. `linnet get demo` fetches a small one.\n", folders.own.c_str(),
                 folders.hub.c_str());
  }
  const SystemClock clock;
  const Clock::Duration end = clock.now() + kReadingMax;
  for (const LocalModel& model : models) {
    const std::string text = clock.now() < end ? description(model.path.string()) : std::string("not looked at");
    std::printf("%-40s %8.1f MB  %s\n%42s%s\n", one_line(model.name).c_str(), static_cast<double>(model.bytes) / 1e6,
                one_line(text).c_str(), "", model.path.c_str());
  }
  return {};
}

}  // namespace

void add_ls_command(CLI::App& root, RunCommand& run) {
  CLI::App* app = root.add_subcommand("ls", "List the models on this machine, with what their headers say");
  app->callback([&run] { run = ls; });
}

}  // namespace linnet
