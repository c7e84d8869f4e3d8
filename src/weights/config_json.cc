#include "weights/config_json.h"

#include <utility>

#include "weights/folder_files.h"
#include "weights/quote.h"

namespace linnet {
namespace {

const Json* find_in(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace

Result<ConfigJson> ConfigJson::open(const std::string& path) {
  LINNET_ASSIGN(std::optional<Json> json, read_json_file(path, kBytesMax));
  if (!json) return Error{ErrorCode::kNotFound, path + " does not exist", path};
  return make(*std::move(json), path);
}

Result<ConfigJson> ConfigJson::make(Json json, std::string path) {
  ConfigJson config(std::move(json), std::move(path));
  if (!config.json_.is_object()) return config.error(ErrorCode::kCorrupt, "not a JSON object");
  const Json* text = find_in(config.json_, "text_config");
  if (text != nullptr && !text->is_object())
    return config.value_error(ErrorCode::kCorrupt, "text_config", *text, "an object is wanted");
  config.nested_ = text != nullptr;
  return config;
}

const Json* ConfigJson::find(std::string_view key) const {
  if (nested_) {
    if (const Json* found = find_in(json_["text_config"], key)) return found;
  }
  return find_in(json_, key);
}

Result<std::int64_t> ConfigJson::require_int(std::string_view key, std::int64_t min, std::int64_t max) const {
  const Json* value = find(key);
  if (value == nullptr) return error(ErrorCode::kCorrupt, "key " + quote(key) + " is missing");
  const std::string range = "whole numbers from " + std::to_string(min) + " to " + std::to_string(max) + " are allowed";
  if (!value->is_number_integer()) return value_error(ErrorCode::kCorrupt, key, *value, range);
  const bool huge = value->is_number_unsigned() && value->get<std::uint64_t>() > static_cast<std::uint64_t>(max);
  if (huge || value->get<std::int64_t>() < min || value->get<std::int64_t>() > max) {
    return value_error(ErrorCode::kCorrupt, key, *value, range);
  }
  return value->get<std::int64_t>();
}

Result<std::optional<double>> ConfigJson::number(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number()) return value_error(ErrorCode::kCorrupt, key, *value, "a number is wanted");
  return std::optional<double>(value->get<double>());
}

Result<std::optional<bool>> ConfigJson::flag(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return value_error(ErrorCode::kCorrupt, key, *value, "true or false is wanted");
  return std::optional<bool>(value->get<bool>());
}

Result<std::optional<std::string>> ConfigJson::string(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return value_error(ErrorCode::kCorrupt, key, *value, "a string is wanted");
  return std::optional<std::string>(value->get<std::string>());
}

Error ConfigJson::error(ErrorCode code, std::string_view what) const { return {code, path_ + ": " + std::string(what), path_}; }

Error ConfigJson::value_error(ErrorCode code, std::string_view key, const Json& value, std::string_view what) const {
  const std::string text = value.is_structured() ? (value.is_array() ? "a list" : "an object") : quote(value.dump());
  return error(code, "key " + quote(key) + " is " + text + "; " + std::string(what));
}

ConfigJson ConfigJson::within(const Json& object) const { return {object, path_}; }

}  // namespace linnet
