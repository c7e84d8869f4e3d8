#include "weights/text_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "weights/folder_files.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

Result<std::string> read_chat_template(const std::string& folder) {
  const fs::path root(folder);
  LINNET_ASSIGN(std::optional<std::string> file, read_folder_file(root / "chat_template.jinja", TextFolder::kFileBytesMax));
  if (file) return *std::move(file);
  const fs::path config_path = root / "tokenizer_config.json";
  LINNET_ASSIGN(const std::optional<std::string> config, read_folder_file(config_path, TextFolder::kFileBytesMax));
  if (!config) return std::string();
  return template_in(config_path, *config);
}

Result<TextFolder> read_text_folder(const std::string& folder) {
  const fs::path root(folder);
  LINNET_ASSIGN(std::optional<std::string> tokenizer, read_folder_file(root / "tokenizer.json", TextFolder::kFileBytesMax));
  if (!tokenizer) return Error{ErrorCode::kNotFound, (root / "tokenizer.json").string() + " does not exist", folder};
  LINNET_ASSIGN(std::optional<std::string> config, read_folder_file(root / "tokenizer_config.json", TextFolder::kFileBytesMax));
  LINNET_ASSIGN(std::string chat_template, read_chat_template(folder));
  return TextFolder{.tokenizer_json = *std::move(tokenizer),
                    .tokenizer_config_json = std::move(config).value_or(""),
                    .chat_template = std::move(chat_template)};
}

}  // namespace linnet
