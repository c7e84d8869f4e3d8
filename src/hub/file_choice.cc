#include "hub/file_choice.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include "hub/size_text.h"

namespace linnet {
namespace {

constexpr std::array<std::string_view, 15> kTextFiles = {"added_tokens.json",
                                                         "chat_template.json",
                                                         "config.json",
                                                         "generation_config.json",
                                                         "merges.txt",
                                                         "preprocessor_config.json",
                                                         "processor_config.json",
                                                         "special_tokens_map.json",
                                                         "tiktoken.model",
                                                         "tokenizer.json",
                                                         "tokenizer.model",
                                                         "tokenizer_config.json",
                                                         "vocab.json",
                                                         "vocab.txt",
                                                         "video_preprocessor_config.json"};
constexpr std::string_view kIndex = "model.safetensors.index.json";

bool in_root(std::string_view path) { return path.find('/') == path.npos; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "a-00002-of-00003" -> "a"; other stems are themselves.
std::string_view without_part(std::string_view stem) {
  constexpr std::size_t kPartBytes = 15;  // -ddddd-of-ddddd
  if (stem.size() <= kPartBytes) return stem;
  const std::string_view part = stem.substr(stem.size() - kPartBytes);
  const bool is_part =
      part[0] == '-' && all_digits(part.substr(1, 5)) && part.substr(6, 4) == "-of-" && all_digits(part.substr(10));
  return is_part ? stem.substr(0, stem.size() - kPartBytes) : stem;
}

std::string_view stem_of(std::string_view path) { return path.substr(0, path.rfind('.')); }

bool is_text_file(std::string_view path) {
  if (path.ends_with(".jinja")) return in_root(path) || path.starts_with("additional_chat_templates/");
  return std::find(kTextFiles.begin(), kTextFiles.end(), path) != kTextFiles.end() ||
         (in_root(path) && path.ends_with(".tiktoken"));
}

// The safetensors files that make up the model, and their index; nothing if there is no model in this format.
std::vector<HubFile> safetensors_of(const std::vector<HubFile>& files) {
  std::vector<HubFile> whole;
  std::vector<HubFile> shards;
  std::vector<HubFile> others;
  bool has_index = false;
  bool has_shards = false;
  for (const HubFile& file : files) {
    const std::string_view stem = stem_of(file.path);
    if (file.path == kIndex) {
      shards.push_back(file);
      has_index = true;
    }
    if (!in_root(file.path) || !file.path.ends_with(".safetensors")) continue;
    if (stem == "model") {
      whole.push_back(file);
    } else if (without_part(stem) == "model") {
      shards.push_back(file);
      has_shards = true;
    } else if (!stem.starts_with("adapter") && !stem.starts_with("consolidated")) {
      // consolidated.* holds the same weights once more, in their maker's own naming.
      others.push_back(file);
    }
  }
  if (has_shards && (has_index || whole.empty())) return shards;
  return !whole.empty() ? whole : others;
}

// The GGUF models, each with its parts, by path without extension and part number. Projectors of media and calibration data are
// no models.
std::map<std::string, std::vector<HubFile>> ggufs_of(const std::vector<HubFile>& files) {
  std::map<std::string, std::vector<HubFile>> models;
  for (const HubFile& file : files) {
    if (!file.path.ends_with(".gguf")) continue;
    const std::string name = lower(std::string_view(file.path).substr(file.path.rfind('/') + 1));
    if (name.starts_with("mmproj") || name.find("imatrix") != name.npos) continue;
    models[std::string(without_part(stem_of(file.path)))].push_back(file);
  }
  return models;
}

// Whether a model's path holds the quantization as a word of its own: Q4_K is in neither IQ4_K nor Q4_K_M.
bool is_quantized_as(std::string_view path, std::string_view quantization) {
  const std::string whole = lower(path);
  const std::string word = lower(quantization);
  const auto ends_word = [](char c) { return c == '-' || c == '.' || c == '/'; };
  for (std::size_t at = whole.find(word); at != whole.npos; at = whole.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || ends_word(whole[at - 1]) || whole[at - 1] == '_';
    if (begins && (end == whole.size() || ends_word(whole[end]))) return true;
  }
  return false;
}

std::string list_of(const std::map<std::string, std::vector<HubFile>>& models) {
  std::string text;
  for (const auto& [stem, parts] : models) {
    std::uint64_t bytes = 0;
    for (const HubFile& part : parts) bytes += part.bytes;
    text += "\n  " + parts.front().path + "  " + size_text(bytes) +
            (parts.size() > 1 ? " in " + std::to_string(parts.size()) + " files" : "");
  }
  return text;
}

Result<std::vector<HubFile>> choose_gguf(std::map<std::string, std::vector<HubFile>> models, const HubName& name) {
  const std::string every = list_of(models);
  std::erase_if(models, [&name](const auto& model) {
    const auto& [stem, parts] = model;
    if (!name.quantization.empty()) return !is_quantized_as(stem, name.quantization);
    return !name.file.empty() && std::none_of(parts.begin(), parts.end(), [&](const HubFile& f) { return f.path == name.file; });
  });
  if (models.size() == 1) return models.begin()->second;
  const std::string asked = !name.file.empty() ? name.file : name.quantization;
  if (models.empty()) {
    return Error{ErrorCode::kNotFound,
                 name.repository + " has no GGUF \"" + asked + "\"" + (every.empty() ? " and no other" : "; it has" + every),
                 "MODEL"};
  }
  return Error{ErrorCode::kInvalidArgument,
               name.repository + " has several GGUF files" + (asked.empty() ? "" : " for \"" + asked + "\"") +
                   "; name one, as in `linnet get " + name.repository + "/FILE` or `linnet get " + name.repository +
                   ":Q4_K_M`:" + list_of(models),
               "MODEL"};
}

}  // namespace

Result<std::vector<HubFile>> choose_files(const std::vector<HubFile>& files, const HubName& name) {
  std::vector<HubFile> chosen;
  const bool wants_gguf = !name.quantization.empty() || !name.file.empty();
  if (!wants_gguf) chosen = safetensors_of(files);
  if (!chosen.empty()) {
    std::copy_if(files.begin(), files.end(), std::back_inserter(chosen),
                 [](const HubFile& file) { return is_text_file(file.path); });
  } else {
    auto models = ggufs_of(files);
    if (models.empty() && !wants_gguf) {
      return Error{ErrorCode::kNotFound,
                   name.repository +
                       " has neither safetensors nor GGUF files: a model in another format (or none); look for a "
                       "converted copy of it on the hub",
                   "MODEL"};
    }
    LINNET_ASSIGN(chosen, choose_gguf(std::move(models), name));
  }
  std::sort(chosen.begin(), chosen.end(), [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  return chosen;
}

}  // namespace linnet
