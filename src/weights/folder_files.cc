#include "weights/folder_files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "weights/quote.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<std::optional<std::string>> read_folder_file(const fs::path& path, std::size_t bytes_max) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::optional<std::string>();
  const std::uintmax_t size = fs::file_size(path, failed);
  if (failed) return Error{ErrorCode::kIo, path.string() + ": " + failed.message(), path.string()};
  if (size > bytes_max) {
    return Error{ErrorCode::kTooLarge,
                 path.string() + " has " + std::to_string(size) + " bytes; at most " + std::to_string(bytes_max) + " are read",
                 path.string()};
  }
  std::string content(size, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(content.data(), static_cast<std::streamsize>(size));
  if (!file) return Error{ErrorCode::kIo, path.string() + ": " + std::strerror(errno), path.string()};
  return std::optional<std::string>(std::move(content));
}

Result<Json> parse_json_object(std::string_view text, const std::string& path, const JsonLimits& limits) {
  JsonLimits named = limits;
  named.subject = "the file";
  Result<Json> json = read_json(text, named);
  const auto corrupt = [&](const std::string& what) { return Error{ErrorCode::kCorrupt, path + ": " + what, path}; };
  if (!json.ok()) return corrupt(json.error().message + (json.error().param.empty() ? "" : ", " + quote(json.error().param)));
  if (!json->is_object()) return corrupt("not a JSON object");
  return json;
}

Result<std::optional<Json>> read_json_file(const fs::path& path, std::size_t bytes_max, const JsonLimits& limits) {
  LINNET_ASSIGN(const std::optional<std::string> text, read_folder_file(path, bytes_max));
  if (!text) return std::optional<Json>();
  LINNET_ASSIGN(Json json, parse_json_object(*text, path.string(), limits));
  return std::optional<Json>(std::move(json));
}

}  // namespace linnet
