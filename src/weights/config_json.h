// The keys of a folder's config.json, wherever it keeps them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "json/read_json.h"
#include "linnet/status.h"

namespace linnet {

// One object of the file, or two: "text_config" of a model that also sees or hears, and what surrounds it. A key is looked up in
// text_config first; null is as good as absent. Immutable. Each accessor's error (kCorrupt) names file, key and value.
class ConfigJson {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{4} << 20;

  // Errors: kNotFound (no file), those of read_json_file(), kCorrupt (a text_config that is no object).
  static Result<ConfigJson> open(const std::string& path);
  // `path`: for messages.
  static Result<ConfigJson> make(Json json, std::string path);

  bool nested() const { return nested_; }
  const std::string& path() const { return path_; }
  // Null if there is none.
  const Json* find(std::string_view key) const;

  Result<std::int64_t> require_int(std::string_view key, std::int64_t min, std::int64_t max) const;
  Result<std::optional<double>> number(std::string_view key) const;
  Result<std::optional<bool>> flag(std::string_view key) const;
  Result<std::optional<std::string>> string(std::string_view key) const;

  // "file: " + what.
  Error error(ErrorCode code, std::string_view what) const;
  // "file: key 'k' is <value>; " + what.
  Error value_error(ErrorCode code, std::string_view key, const Json& value, std::string_view what) const;

  // The keys of an object inside ("rope_scaling"), with messages of this file.
  ConfigJson within(const Json& object) const;

 private:
  ConfigJson(Json json, std::string path) : json_(std::move(json)), path_(std::move(path)) {}

  Json json_;
  std::string path_;
  bool nested_ = false;
};

}  // namespace linnet
