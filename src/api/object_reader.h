// Strict typed reading of a JSON object: a wrong type or value is an error that names the field and what is allowed.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/read_json.h"
#include "linnet/status.h"

namespace linnet::api {

struct NumberRange {
  double min = 0;
  double max = 0;
  bool min_allowed = true;
  bool max_allowed = true;
};

struct IntegerRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

// Borrows the object. A field that is null counts as absent. Whatever was asked for is known; unknown() tells the rest.
class ObjectReader {
 public:
  // `path`: of the object itself, as errors call it ("messages[2]"); empty for the whole body.
  ObjectReader(const Json& object, std::string path);

  const Json* find(std::string_view name);  // null if absent
  void accept(std::string_view name);       // known, whatever it holds
  bool knows(std::string_view name) const;  // was asked for

  Result<std::optional<bool>> boolean(std::string_view name);
  Result<std::optional<double>> number(std::string_view name, const NumberRange& range);  // integers too
  Result<std::optional<std::int64_t>> integer(std::string_view name, const IntegerRange& range);
  Result<std::optional<std::string>> string(std::string_view name);
  Result<std::string> required_string(std::string_view name);

  // Paths of the fields that nobody asked for.
  std::vector<std::string> unknown() const;
  std::string path_of(std::string_view name) const;

 private:
  const Json& object_;
  const std::string path_;
  std::vector<std::string_view> known_;
};

// "5", "\"0.7\"", "an array": a value as error messages show it, short.
std::string describe(const Json& value);

// `path` must be `expected`, not `value`.
Error wrong_value(std::string path, std::string_view expected, const Json& value);

// `path` is missing; it must be `expected`.
Error missing_value(std::string path, std::string_view expected);

// "path[3]"
std::string indexed(std::string_view path, std::size_t index);

// The paths in `unknown` that lie in the element `path` of a list join `ignored` without the element's number:
// "messages[].field", each once.
void ignore_in_element(const std::vector<std::string>& unknown, std::string_view path, std::vector<std::string>& ignored);

}  // namespace linnet::api
