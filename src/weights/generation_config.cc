#include "weights/generation_config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "weights/config_limits.h"
#include "weights/folder_files.h"
#include "weights/quote.h"
#include "weights/rope_check.h"
#include "weights/text_folder.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBytesMax = std::size_t{1} << 20;

// Empty: no such file, or a broken one, which is a warning.
std::optional<ConfigJson> optional_file(const fs::path& path, std::size_t bytes_max, std::vector<std::string>& warnings) {
  Result<std::optional<Json>> json = read_json_file(path, bytes_max);
  if (!json.ok()) warnings.push_back(json.error().message + "; it is not read");
  if (!json.ok() || !*json) return std::nullopt;
  Result<ConfigJson> config = ConfigJson::make(**std::move(json), path.string());
  if (!config.ok()) {
    warnings.push_back(config.error().message + "; it is not read");
    return std::nullopt;
  }
  return *std::move(config);
}

// A number or a list of them.
Status add_end_tokens(const ConfigJson& json, std::int32_t vocabulary, std::vector<TokenId>& ends) {
  constexpr std::string_view kKey = "eos_token_id";
  const Json* found = json.find(kKey);
  if (found == nullptr) return {};
  const Json list = found->is_array() ? *found : Json::array({*found});
  for (const Json& id : list) {
    if (!id.is_number_integer() || id < 0 || id >= vocabulary) {
      return json.value_error(ErrorCode::kCorrupt, kKey, id, "ids from 0 to " + std::to_string(vocabulary - 1) + " are wanted");
    }
    ends.push_back(static_cast<TokenId>(id.get<std::int32_t>()));
  }
  return {};
}

// "eos_token" is a name, or an object with it; "added_tokens_decoder" has the ids of such names. A name that is not there is left
// to the tokenizer, which knows them all.
std::optional<TokenId> named_end_token(const ConfigJson& json, std::int32_t vocabulary) {
  const Json* name = json.find("eos_token");
  if (name != nullptr && name->is_object()) name = name->contains("content") ? &(*name)["content"] : nullptr;
  const Json* added = json.find("added_tokens_decoder");
  if (name == nullptr || added == nullptr || !name->is_string() || !added->is_object()) return std::nullopt;
  for (const auto& [id, token] : added->items()) {
    if (!token.is_object() || !token.contains("content") || token["content"] != *name) continue;
    std::int32_t value = -1;
    std::from_chars(id.data(), id.data() + id.size(), value);
    if (value >= 0 && value < vocabulary) return static_cast<TokenId>(value);
  }
  return std::nullopt;
}

// A recommendation outside of what sampling takes is an error: used or dropped silently, it would change answers.
Result<std::optional<float>> recommended(const ConfigJson& json, std::string_view key, double min, double max) {
  LINNET_ASSIGN(const std::optional<double> value, json.number(key));
  if (!value) return std::optional<float>();
  if (!(*value >= min && *value <= max)) {
    return json.value_error(ErrorCode::kCorrupt, key, *json.find(key),
                            number_text(min) + " to " + number_text(max) + " are allowed");
  }
  return std::optional<float>(static_cast<float>(*value));
}

Result<SamplingOverrides> recommended_sampling(const ConfigJson& json) {
  SamplingOverrides sampling;
  LINNET_ASSIGN(const std::optional<bool> sampled, json.flag("do_sample"));
  LINNET_ASSIGN(sampling.temperature, recommended(json, "temperature", 0, 100));
  if (sampled && !*sampled) {
    // Not sampled is greedy; what else the file says has no meaning then.
    sampling.temperature = 0.0F;
    return sampling;
  }
  LINNET_ASSIGN(sampling.top_p, recommended(json, "top_p", 1e-6, 1));
  LINNET_ASSIGN(sampling.min_p, recommended(json, "min_p", 0, 1 - 1e-6));
  LINNET_ASSIGN(const std::optional<double> top_k, json.number("top_k"));
  // Files say "off" with 0 or less.
  if (top_k)
    sampling.top_k = static_cast<std::int32_t>(std::clamp(*top_k, 0.0, static_cast<double>(ConfigLimits::kVocabularyMax)));
  return sampling;
}

}  // namespace

Result<GenerationDefaults> read_generation(const std::string& folder, const ConfigJson& json, const ModelConfig& config,
                                           std::vector<std::string>& warnings) {
  GenerationDefaults generation;
  std::vector<TokenId>& ends = generation.end_tokens;
  LINNET_RETURN_IF_ERROR(add_end_tokens(json, config.vocabulary, ends));
  if (const auto file = optional_file(fs::path(folder) / "generation_config.json", kBytesMax, warnings)) {
    LINNET_RETURN_IF_ERROR(add_end_tokens(*file, config.vocabulary, ends));
    LINNET_ASSIGN(generation.sampling, recommended_sampling(*file));
    LINNET_ASSIGN(const std::optional<double> penalty, file->number("repetition_penalty"));
    if (penalty && *penalty != 1) {
      warnings.push_back(file->path() + " recommends a repetition_penalty of " + number_text(*penalty) +
                         ", which is not followed");
    }
  }
  if (const auto file = optional_file(fs::path(folder) / "tokenizer_config.json", TextFolder::kFileBytesMax, warnings)) {
    if (const std::optional<TokenId> end = named_end_token(*file, config.vocabulary)) ends.push_back(*end);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return generation;
}

}  // namespace linnet
