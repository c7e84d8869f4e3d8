#include "hub/cache_folder.h"

#include <cstdlib>
#include <optional>
#include <string_view>

namespace linnet {
namespace {

namespace fs = std::filesystem;

// A variable that is set and not empty, as a path; a leading "~/" is the home folder, as in Hugging Face's tools.
std::optional<fs::path> folder_in(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text = value;
  const char* home = std::getenv("HOME");
  if (text.starts_with("~/") && home != nullptr) return fs::path(home) / text.substr(2);
  return fs::path(text);
}

Error nowhere(const char* variable) {
  return {ErrorCode::kNotFound, std::string("no cache folder: set ") + variable + " (or HOME) to a folder for models", variable};
}

}  // namespace

Result<fs::path> cache_folder() {
  if (const auto folder = folder_in("LINNET_CACHE")) return *folder;
  if (const auto folder = folder_in("XDG_CACHE_HOME")) return *folder / "linnet";
  if (const auto folder = folder_in("HOME")) return *folder / ".cache" / "linnet";
  return nowhere("LINNET_CACHE");
}

Result<fs::path> models_folder() {
  LINNET_ASSIGN(const fs::path cache, cache_folder());
  return cache / "models";
}

Result<fs::path> huggingface_home() {
  if (const auto folder = folder_in("HF_HOME")) return *folder;
  if (const auto folder = folder_in("XDG_CACHE_HOME")) return *folder / "huggingface";
  if (const auto folder = folder_in("HOME")) return *folder / ".cache" / "huggingface";
  return nowhere("HF_HOME");
}

Result<fs::path> hub_cache_folder() {
  if (const auto folder = folder_in("HF_HUB_CACHE")) return *folder;
  if (const auto folder = folder_in("HUGGINGFACE_HUB_CACHE")) return *folder;
  LINNET_ASSIGN(const fs::path home, huggingface_home());
  return home / "hub";
}

}  // namespace linnet
