#include "api/grammar_fields.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace linnet::api {
namespace {

using Source = std::optional<GrammarSource>;

constexpr std::string_view kAnyObject = R"({"type":"object"})";

// A schema, as JSON or as a string that holds JSON.
Result<Source> schema_of(const Json& value, const std::string& path) {
  if (value.is_string()) return Source(GrammarSource{GrammarKind::kJsonSchema, value.get<std::string>()});
  if (!value.is_object() && !value.is_boolean()) return wrong_value(path, "a JSON schema", value);
  return Source(GrammarSource{GrammarKind::kJsonSchema, value.dump()});
}

Result<Source> text_of(const Json& value, const std::string& path, GrammarKind kind) {
  if (!value.is_string()) return wrong_value(path, "a string", value);
  return Source(GrammarSource{kind, value.get<std::string>()});
}

// One of several texts, as a regular expression.
Result<Source> choice_of(const Json& value, const std::string& path) {
  if (!value.is_array() || value.empty()) return wrong_value(path, "an array of at least one string", value);
  std::string regex;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (!value[i].is_string()) return wrong_value(path + "[" + std::to_string(i) + "]", "a string", value[i]);
    regex += i == 0 ? "(" : "|";
    for (const char c : value[i].get_ref<const std::string&>()) {
      if (std::string_view("\\.+*?()|[]{}^$#&-~/").find(c) != std::string_view::npos) regex += '\\';
      regex += c;
    }
  }
  return Source(GrammarSource{GrammarKind::kRegex, regex + ")"});
}

Result<Source> response_format_of(const Json& value) {
  const auto type = value.is_object() ? value.find("type") : value.end();
  if (!value.is_object() || type == value.end() || !type->is_string()) {
    return wrong_value("response_format", "an object with a type", value);
  }
  const auto& name = type->get_ref<const std::string&>();
  if (name == "text") return Source();
  if (name == "json_object") return Source(GrammarSource{GrammarKind::kJsonSchema, std::string(kAnyObject)});
  if (name != "json_schema") return wrong_value("response_format.type", "\"text\", \"json_object\" or \"json_schema\"", *type);
  const auto wrapper = value.find("json_schema");
  if (wrapper == value.end() || !wrapper->is_object() || !wrapper->contains("schema")) {
    return Error{ErrorCode::kInvalidArgument, "response_format.json_schema must be an object with a schema",
                 "response_format.json_schema"};
  }
  return schema_of((*wrapper)["schema"], "response_format.json_schema.schema");
}

Result<Source> structured_outputs_of(const Json& value) {
  if (!value.is_object()) return wrong_value("structured_outputs", "an object", value);
  ObjectReader inner(value, "structured_outputs");
  if (const Json* json = inner.find("json")) return schema_of(*json, "structured_outputs.json");
  if (const Json* regex = inner.find("regex")) return text_of(*regex, "structured_outputs.regex", GrammarKind::kRegex);
  if (const Json* choice = inner.find("choice")) return choice_of(*choice, "structured_outputs.choice");
  if (const Json* grammar = inner.find("grammar")) return text_of(*grammar, "structured_outputs.grammar", GrammarKind::kLark);
  return Error{ErrorCode::kUnsupported, "structured_outputs must have json, regex, choice or grammar", "structured_outputs"};
}

// What the field `name` asks for; nothing if it is absent or asks for nothing.
Result<Source> read_field(ObjectReader& reader, std::string_view name) {
  const Json* value = reader.find(name);
  if (value == nullptr || (value->is_string() && value->get_ref<const std::string&>().empty())) return Source();
  const std::string path(name);
  if (name == "grammar" || name == "guided_grammar") return text_of(*value, path, GrammarKind::kLark);
  if (name == "response_format") return response_format_of(*value);
  if (name == "json_schema" || name == "guided_json") return schema_of(*value, path);
  if (name == "structured_outputs") return structured_outputs_of(*value);
  if (name == "guided_regex") return text_of(*value, path, GrammarKind::kRegex);
  return choice_of(*value, path);
}

}  // namespace

Status read_grammar_fields(ObjectReader& reader, TextRequest& request) {
  for (const std::string_view name : {"grammar", "guided_grammar", "response_format", "json_schema", "guided_json",
                                      "structured_outputs", "guided_regex", "guided_choice"}) {
    LINNET_ASSIGN(Source source, read_field(reader, name));
    if (source && !request.grammar) request.grammar = std::move(source);
  }
  return {};
}

}  // namespace linnet::api
