// The models on this machine, and what a MODEL argument means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/status.h"

namespace linnet {

// Where models lie. Folders that do not exist have none.
struct ModelFolders {
  std::filesystem::path own;  // models_folder(): one folder for each model
  std::filesystem::path hub;  // hub_cache_folder(): models--org--name/snapshots/<revision>

  // Those of this machine; one that no variable names is empty.
  static ModelFolders of_environment();
};

struct LocalModel {
  std::string name;            // its folder's; "org/name" in the hub's cache, with "@<revision>" behind it if that is not main's
  std::filesystem::path path;  // a .gguf file (of a split one, the first) or a folder with config.json and safetensors files
  std::uint64_t bytes = 0;     // of weights, all parts together

  bool operator==(const LocalModel&) const = default;
};

// More are not looked at, so that a strange folder costs bounded time.
struct LocalModelLimits {
  static constexpr std::size_t kEntriesMax = 10'000;  // of one folder
  static constexpr std::size_t kModelsMax = 1'000;
};

// By name, then by path; no file is opened but the hub cache's refs/main.
std::vector<LocalModel> list_models(const ModelFolders& folders);

// MODEL to a path: an existing path is itself; else a name, demo, demo-gemma, or an unambiguous part of a name (case does not
// matter). Errors: kNotFound, with what there is and how to get one; kInvalidArgument for a part of several names, with all of
// them.
Result<std::string> resolve_model(std::string_view wanted, const ModelFolders& folders);
// The same on this machine.
Result<std::string> resolve_model(std::string_view wanted);

}  // namespace linnet
