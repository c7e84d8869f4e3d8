#include "json/read_json.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace linnet {
namespace {

Error not_json(const JsonLimits& limits, std::size_t position) {
  return {ErrorCode::kInvalidArgument,
          std::string(limits.subject) + " is not valid JSON in UTF-8; the trouble is at byte " + std::to_string(position),
          {}};
}

// Receives the parser's events (the names are the library's) and builds the document. Unlike the library's own builder it checks
// limits, and does not search an object at each insertion.
class TreeBuilder {
 public:
  explicit TreeBuilder(const JsonLimits& limits) : limits_(limits) {}

  Result<Json> take() {
    if (error_) return *std::move(error_);
    return std::move(root_);
  }

  bool null() { return add(Json(nullptr)); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(Json::number_integer_t value) { return add(Json(value)); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(Json(value)); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(Json::binary_t&) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }
  bool end_object() {
    const bool unique = check_unique(open_.back()->get_ref<const Json::object_t&>());
    open_.pop_back();
    return unique;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const Json::exception&) { return fail(not_json(limits_, position)); }

 private:
  std::string subject() const { return std::string(limits_.subject); }

  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }

  bool add(Json value) { return place(std::move(value)) != nullptr; }

  bool open(Json container) {
    if (open_.size() == limits_.depth_max) {
      return fail({ErrorCode::kInvalidArgument,
                   subject() + " has arrays or objects more than " + std::to_string(limits_.depth_max) + " deep",
                   {}});
    }
    Json* placed = place(std::move(container));
    if (placed != nullptr) open_.push_back(placed);
    return placed != nullptr;
  }

  // Where `value` is now. It stays there while it is open: its parent grows no further before it is closed.
  Json* place(Json value) {
    if (++elements_ > limits_.elements_max) {
      fail({ErrorCode::kTooLarge, subject() + " has more than " + std::to_string(limits_.elements_max) + " JSON values", {}});
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) return &open_.back()->get_ref<Json::array_t&>().emplace_back(std::move(value));
    Json::object_t::Container& members = open_.back()->get_ref<Json::object_t&>();
    if (members.size() == limits_.object_keys_max) {
      fail({ErrorCode::kTooLarge,
            "an object in " + subject() + " has more than " + std::to_string(limits_.object_keys_max) + " keys",
            {}});
      return nullptr;
    }
    return &members.emplace_back(std::move(key_), std::move(value)).second;
  }

  bool check_unique(const Json::object_t& object) {
    keys_.clear();
    for (const auto& [name, value] : object) keys_.push_back(name);
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    if (twice == keys_.end()) return true;
    const std::string name(*twice);
    return fail({ErrorCode::kInvalidArgument, "an object in " + subject() + " has two equal keys",
                 name.size() <= 64 ? name : std::string()});
  }

  const JsonLimits& limits_;
  Json root_;
  std::vector<Json*> open_;
  std::string key_;
  std::vector<std::string_view> keys_;
  std::size_t elements_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Json> read_json(std::string_view text, const JsonLimits& limits) {
  if (text.empty()) {
    return Error{ErrorCode::kInvalidArgument, std::string(limits.subject) + " is empty; send a JSON object", {}};
  }
  TreeBuilder builder(limits);
  // The library takes a zero byte for the end, and would never see what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) return not_json(limits, zero + 1);
  Json::sax_parse(text.begin(), text.end(), &builder, nlohmann::detail::input_format_t::json, /*strict=*/true);
  return builder.take();
}

}  // namespace linnet
