#include "api/responses_request.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/object_reader.h"
#include "api/prompt_messages.h"
#include "api/reasoning_fields.h"
#include "api/request_body.h"
#include "api/responses_items.h"

namespace linnet::api {
namespace {

// The request's own value, or what the protocol has for one that is absent.
std::string field_or(const Json& body, const char* name, std::string_view absent) {
  const auto found = body.find(name);
  return found == body.end() || found->is_null() ? std::string(absent) : found->dump();
}

// `stored`: whether the response will be.
std::string encode_echo(const Json& body, bool stored) {
  std::string echo;
  const auto add = [&](const char* name, std::string_view absent) {
    echo.append("\"").append(name).append("\":").append(field_or(body, name, absent)).append(",");
  };
  add("instructions", "null");
  add("max_output_tokens", "null");
  add("max_tool_calls", "null");
  add("metadata", "{}");
  add("parallel_tool_calls", "true");
  add("previous_response_id", "null");
  add("prompt_cache_key", "null");
  add("reasoning", R"({"effort":null,"summary":null})");
  add("safety_identifier", "null");
  add("service_tier", "\"default\"");
  echo.append(stored ? "\"store\":true," : "\"store\":false,");
  add("temperature", "null");
  add("text", R"({"format":{"type":"text"}})");
  add("tool_choice", "\"auto\"");
  add("tools", "[]");
  add("top_logprobs", "0");
  add("top_p", "null");
  add("truncation", "\"disabled\"");
  add("user", "null");
  return echo;
}

// Built-in tools are not here for the model to call, and left out; functions would be.
Status check_tools(ObjectReader& reader, std::vector<std::string>& ignored) {
  const Json* choice = reader.find("tool_choice");
  const Json* tools = reader.find("tools");
  if (tools == nullptr) return {};
  if (!tools->is_array()) return wrong_value("tools", "an array", *tools);
  const bool none = choice != nullptr && *choice == "none";
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const std::string path = indexed("tools", i);
    if (!(*tools)[i].is_object()) return wrong_value(path, "an object with a type", (*tools)[i]);
    ObjectReader tool((*tools)[i], path);
    LINNET_ASSIGN(const std::string type, tool.required_string("type"));
    if (type != "function") {
      ignored.push_back(path);
    } else if (!none) {
      return Error{ErrorCode::kUnsupported, "function tools are not offered yet: leave them out or send tool_choice \"none\"",
                   path};
    }
  }
  return {};
}

Status read_reasoning(ObjectReader& reader, ReasoningWish& wish) {
  const Json* reasoning = reader.find("reasoning");
  if (reasoning == nullptr) return {};
  if (!reasoning->is_object()) return wrong_value("reasoning", "an object", *reasoning);
  ObjectReader inner(*reasoning, "reasoning");
  for (const char* name : {"summary", "generate_summary"}) inner.accept(name);  // thoughts are shown as they are
  return read_effort(inner, "effort", wish);
}

// text.format, which is what response_format is elsewhere.
Status read_text(ObjectReader& reader, std::optional<GrammarSource>& grammar) {
  const Json* text = reader.find("text");
  if (text == nullptr) return {};
  if (!text->is_object()) return wrong_value("text", "an object", *text);
  ObjectReader inner(*text, "text");
  inner.accept("verbosity");
  const Json* format = inner.find("format");
  if (format == nullptr) return {};
  if (!format->is_object()) return wrong_value("text.format", "an object with a type", *format);
  ObjectReader fields(*format, "text.format");
  LINNET_ASSIGN(const std::string type, fields.required_string("type"));
  if (type == "text") return {};
  if (type == "json_object") {
    grammar = GrammarSource{GrammarKind::kJsonSchema, R"({"type":"object"})"};
    return {};
  }
  if (type != "json_schema") return wrong_value("text.format.type", "text, json_object or json_schema", Json(type));
  const Json* schema = fields.find("schema");
  if (schema == nullptr) return missing_value("text.format.schema", "a JSON schema");
  if (!schema->is_object()) return wrong_value("text.format.schema", "a JSON schema", *schema);
  grammar = GrammarSource{GrammarKind::kJsonSchema, schema->dump()};
  return {};
}

Status refuse_unsupported(ObjectReader& reader) {
  LINNET_ASSIGN(const auto background, reader.boolean("background"));
  if (background.value_or(false)) {
    return Error{ErrorCode::kUnsupported, "background is not offered: leave it out or send false", "background"};
  }
  const Json* truncation = reader.find("truncation");
  if (truncation != nullptr && *truncation != "disabled") {
    return Error{ErrorCode::kUnsupported, "truncation must be \"disabled\": nothing is cut away silently here", "truncation"};
  }
  for (const char* name : {"conversation", "prompt", "moderation"}) {
    if (reader.find(name) != nullptr)
      return Error{ErrorCode::kUnsupported, std::string(name) + " is not offered: leave it out", name};
  }
  for (const char* name : {"include", "max_tool_calls"}) reader.accept(name);  // without effect on the answer
  return {};
}

// Input as items: a text is a user's message.
Result<Json> read_input(const Json* input) {
  constexpr std::string_view kShape = "a string or an array of items";
  if (input == nullptr) return missing_value("input", kShape);
  if (input->is_string()) return Json::array({{{"type", "message"}, {"role", "user"}, {"content", *input}}});
  if (!input->is_array()) return wrong_value("input", kShape, *input);
  return *input;
}

// What an earlier response was about, as items; none without one.
Result<Json> read_previous(const std::optional<std::string>& id, const ParseOptions& options) {
  Json items = Json::array();
  if (!id) return items;
  if (!options.stored) {
    return Error{ErrorCode::kUnsupported, "previous_response_id needs stored responses, which this server does not keep",
                 "previous_response_id"};
  }
  LINNET_ASSIGN(const StoredItems stored, options.stored(*id));
  LINNET_ASSIGN(items, read_json(stored.items));
  LINNET_ASSIGN(const Json output, read_json(stored.output));
  for (const Json& item : output) items.push_back(item);
  return items;
}

Status read_limits(ObjectReader& reader, ParsedRequest& parsed) {
  LINNET_ASSIGN(const auto tokens,
                reader.integer("max_output_tokens", {.min = 0, .max = std::numeric_limits<std::int32_t>::max()}));
  if (tokens) parsed.request.max_tokens = static_cast<std::int32_t>(*tokens);
  return {};
}

}  // namespace

Result<ParsedRequest> parse_responses(std::string_view body, const ParseOptions& options) {
  LINNET_ASSIGN(const Json json, read_body(body));
  ObjectReader reader(json, {});
  ParsedRequest parsed;
  LINNET_RETURN_IF_ERROR(check_tools(reader, parsed.ignored));
  LINNET_RETURN_IF_ERROR(refuse_unsupported(reader));
  LINNET_RETURN_IF_ERROR(read_reasoning(reader, parsed.reasoning));
  LINNET_RETURN_IF_ERROR(read_common_fields(reader, parsed));
  LINNET_RETURN_IF_ERROR(refuse_choices(parsed));
  LINNET_RETURN_IF_ERROR(read_text(reader, parsed.request.grammar));
  LINNET_RETURN_IF_ERROR(read_limits(reader, parsed));
  LINNET_ASSIGN(const auto instructions, reader.string("instructions"));
  LINNET_ASSIGN(const auto previous, reader.string("previous_response_id"));
  LINNET_ASSIGN(const auto store, reader.boolean("store"));
  LINNET_ASSIGN(Json items, read_previous(previous, options));
  LINNET_ASSIGN(const Json input, read_input(reader.find("input")));

  Json messages = Json::array();
  if (instructions && !instructions->empty()) messages.push_back({{"role", "system"}, {"content", *instructions}});
  std::vector<std::string> old_fields;  // were reported when they came
  LINNET_RETURN_IF_ERROR(append_items(items, "previous_response_id", messages, old_fields));
  LINNET_RETURN_IF_ERROR(append_items(input, "input", messages, parsed.ignored));
  if (messages.empty()) return wrong_value("input", "a string or an array of at least one item", input);
  for (const Json& item : input) items.push_back(item);
  ChatPrompt prompt;
  set_messages(messages, prompt);
  parsed.request.prompt = std::move(prompt);
  const bool stored = store.value_or(true) && options.stored;
  parsed.responses = ResponsesFields{.echo = encode_echo(json, stored), .items = items.dump(), .store = stored};
  LINNET_RETURN_IF_ERROR(settle_unknown_fields(reader, options, parsed));
  return parsed;
}

}  // namespace linnet::api
