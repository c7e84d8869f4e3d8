#include "api/request_body.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/field_rules.h"
#include "api/reasoning_fields.h"
#include "api/sampling_fields.h"

namespace linnet::api {

Result<Json> read_body(std::string_view body) {
  LINNET_ASSIGN(Json json, read_json(body));
  if (!json.is_object()) {
    return Error{ErrorCode::kInvalidArgument, "the body must be a JSON object, not " + describe(json), {}};
  }
  return json;
}

Status read_common_fields(ObjectReader& reader, ParsedRequest& parsed) {
  LINNET_RETURN_IF_ERROR(read_sampling_fields(reader, parsed));
  LINNET_RETURN_IF_ERROR(read_reasoning_fields(reader, parsed));
  return check_field_rules(reader);
}

Status refuse_choices(const ParsedRequest& parsed) {
  if (parsed.request.choices == 1) return {};
  return Error{ErrorCode::kUnsupported, "n is not offered by this protocol, whose replies hold one answer: leave it out", "n"};
}

Status settle_unknown_fields(const ObjectReader& reader, const ParseOptions& options, ParsedRequest& parsed) {
  for (std::string& path : reader.unknown()) parsed.ignored.push_back(std::move(path));
  if (!options.strict || parsed.ignored.empty()) return {};
  const std::string& first = parsed.ignored.front();
  return Error{ErrorCode::kInvalidArgument, describe(Json(first)) + " is not a known field, and this server is strict (--strict)",
               first};
}

}  // namespace linnet::api
