#include "api/object_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"

namespace linnet::api {
namespace {

constexpr std::size_t kShownBytesMax = 40;

// Cut between characters.
std::string shortened(std::string_view utf8) {
  if (utf8.size() <= kShownBytesMax) return std::string(utf8);
  std::size_t end = kShownBytesMax;
  while (end > 0 && (static_cast<unsigned char>(utf8[end]) & 0xC0) == 0x80) --end;
  return std::string(utf8.substr(0, end)) + "...";
}

std::string shown(double value) { return Json(value).dump(); }

std::string describe(const NumberRange& range) {
  return "a number " + std::string(range.min_allowed ? "from " : "above ") + shown(range.min) +
         (range.max_allowed ? " to " : " and below ") + shown(range.max);
}

std::string describe(const IntegerRange& range) {
  if (range.max == std::numeric_limits<std::int64_t>::max() && range.min == std::numeric_limits<std::int64_t>::min())
    return "an integer";
  return "an integer from " + std::to_string(range.min) + " to " + std::to_string(range.max);
}

// An integral number of any JSON spelling ("3", "3.0") that fits.
std::optional<std::int64_t> as_integer(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  constexpr double kExactMax = 9007199254740992.0;  // 2^53
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  if (std::trunc(number) != number || std::abs(number) > kExactMax) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::string describe(const Json& value) {
  if (value.is_array()) return value.empty() ? "an empty array" : "an array";
  if (value.is_object()) return "an object";
  if (value.is_string()) return Json(shortened(value.get_ref<const std::string&>())).dump();
  return value.dump();
}

Error wrong_value(std::string path, std::string_view expected, const Json& value) {
  std::string message = path + " must be " + std::string(expected) + ", not " + describe(value);
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(path)};
}

Error missing_value(std::string path, std::string_view expected) {
  std::string message = path + " is missing; it must be " + std::string(expected);
  return {ErrorCode::kInvalidArgument, std::move(message), std::move(path)};
}

std::string indexed(std::string_view path, std::size_t index) { return std::string(path) + "[" + std::to_string(index) + "]"; }

void ignore_in_element(const std::vector<std::string>& unknown, std::string_view path, std::vector<std::string>& ignored) {
  const std::string_view list = path.substr(0, path.rfind('['));
  for (const std::string& name : unknown) {
    std::string shown = std::string(list) + "[]" + name.substr(path.size());
    if (std::find(ignored.begin(), ignored.end(), shown) == ignored.end()) ignored.push_back(std::move(shown));
  }
}

ObjectReader::ObjectReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  CHECK(object.is_object());
}

std::string ObjectReader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void ObjectReader::accept(std::string_view name) { known_.push_back(name); }

bool ObjectReader::knows(std::string_view name) const { return std::find(known_.begin(), known_.end(), name) != known_.end(); }

const Json* ObjectReader::find(std::string_view name) {
  accept(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

Result<std::optional<bool>> ObjectReader::boolean(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return wrong_value(path_of(name), "true or false", *value);
  return std::optional(value->get<bool>());
}

Result<std::optional<double>> ObjectReader::number(std::string_view name, const NumberRange& range) {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number()) return wrong_value(path_of(name), describe(range), *value);
  const auto number = value->get<double>();
  const bool above = range.min_allowed ? number >= range.min : number > range.min;
  const bool below = range.max_allowed ? number <= range.max : number < range.max;
  if (!above || !below) return wrong_value(path_of(name), describe(range), *value);
  return std::optional(number);
}

Result<std::optional<std::int64_t>> ObjectReader::integer(std::string_view name, const IntegerRange& range) {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<std::int64_t>();
  const std::optional<std::int64_t> number = as_integer(*value);
  if (!number || *number < range.min || *number > range.max) return wrong_value(path_of(name), describe(range), *value);
  return number;
}

Result<std::optional<std::string>> ObjectReader::string(std::string_view name) {
  const Json* value = find(name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong_value(path_of(name), "a string", *value);
  return std::optional(value->get<std::string>());
}

Result<std::string> ObjectReader::required_string(std::string_view name) {
  LINNET_ASSIGN(std::optional<std::string> value, string(name));
  if (!value) return missing_value(path_of(name), "a string");
  return *std::move(value);
}

std::vector<std::string> ObjectReader::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!knows(name)) names.push_back(path_of(name));
  }
  return names;
}

}  // namespace linnet::api
