// The models on this machine, and what a MODEL argument means.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/status.h"

namespace linnet {

struct LocalModel {
  std::string name;            // its folder's
  std::filesystem::path path;  // its .gguf file
  std::uint64_t bytes = 0;

  bool operator==(const LocalModel&) const = default;
};

// The models under `models`, by name; nothing is opened. A folder that does not exist has none.
std::vector<LocalModel> list_models(const std::filesystem::path& models);

// MODEL to a path: an existing path is itself; else a name, demo, demo-gemma, or an unambiguous part of a name (case does not
// matter). Errors: kNotFound, with what there is and how to get one; kInvalidArgument for a part of several names, with all of
// them.
Result<std::string> resolve_model(std::string_view wanted, const std::filesystem::path& models);
// The same under models_folder().
Result<std::string> resolve_model(std::string_view wanted);

}  // namespace linnet
