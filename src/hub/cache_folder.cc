#include "hub/cache_folder.h"

#include <cstdlib>

namespace linnet {

Result<std::filesystem::path> cache_folder() {
  const auto set = [](const char* name) -> const char* {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
  };
  if (const char* folder = set("LINNET_CACHE")) return std::filesystem::path(folder);
  if (const char* folder = set("XDG_CACHE_HOME")) return std::filesystem::path(folder) / "linnet";
  if (const char* folder = set("HOME")) return std::filesystem::path(folder) / ".cache" / "linnet";
  return Error{ErrorCode::kNotFound, "no cache folder: set LINNET_CACHE (or HOME) to a folder for models", "LINNET_CACHE"};
}

Result<std::filesystem::path> models_folder() {
  LINNET_ASSIGN(const std::filesystem::path cache, cache_folder());
  return cache / "models";
}

}  // namespace linnet
