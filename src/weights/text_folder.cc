#include "weights/text_folder.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace linnet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Empty if there is no such file.
Result<std::optional<std::string>> read_file(const fs::path& path) {
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::optional<std::string>();
  const std::uintmax_t size = fs::file_size(path, failed);
  if (failed) return Error{ErrorCode::kIo, path.string() + ": " + failed.message(), path.string()};
  if (size > TextFolder::kFileBytesMax) {
    return Error{ErrorCode::kTooLarge,
                 path.string() + " has " + std::to_string(size) + " bytes; at most " + std::to_string(TextFolder::kFileBytesMax) +
                     " are read",
                 path.string()};
  }
  std::string content(size, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(content.data(), static_cast<std::streamsize>(size));
  if (!file) return Error{ErrorCode::kIo, path.string() + ": " + std::strerror(errno), path.string()};
  return std::optional<std::string>(std::move(content));
}

Error corrupt(const fs::path& path, const std::string& what) {
  return {ErrorCode::kCorrupt, path.string() + ": " + what, path.string()};
}

// A string, or a list of {"name", "template"} of which "default" counts.
Result<std::string> template_in(const fs::path& path, const std::string& config_text) {
  const Json config = Json::parse(config_text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return corrupt(path, "not a JSON object");
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return corrupt(path, "chat_template is neither a string nor a list of templates");
  for (const Json& entry : *found) {
    if (!entry.is_object() || !entry.contains("name") || !entry.contains("template")) continue;
    if (entry["name"] == "default" && entry["template"].is_string()) return entry["template"].get<std::string>();
  }
  return corrupt(path, "chat_template is a list without one named \"default\"");
}

}  // namespace

Result<TextFolder> read_text_folder(const std::string& folder) {
  const fs::path root(folder);
  LINNET_ASSIGN(std::optional<std::string> tokenizer, read_file(root / "tokenizer.json"));
  if (!tokenizer) return Error{ErrorCode::kNotFound, (root / "tokenizer.json").string() + " does not exist", folder};
  LINNET_ASSIGN(std::optional<std::string> config, read_file(root / "tokenizer_config.json"));
  LINNET_ASSIGN(std::optional<std::string> chat_template, read_file(root / "chat_template.jinja"));
  if (!chat_template && config) {
    LINNET_ASSIGN(chat_template, template_in(root / "tokenizer_config.json", *config));
  }
  return TextFolder{.tokenizer_json = *std::move(tokenizer),
                    .tokenizer_config_json = std::move(config).value_or(""),
                    .chat_template = std::move(chat_template).value_or("")};
}

}  // namespace linnet
