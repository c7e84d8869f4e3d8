#include "api/anthropic_request.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/anthropic_messages.h"
#include "api/field_rules.h"
#include "api/object_reader.h"
#include "api/request_body.h"
#include "api/sampling_fields.h"

namespace linnet::api {
namespace {

// Tools that the model must not call need not be shown to it.
Status check_tools(ObjectReader& reader) {
  const Json* choice = reader.find("tool_choice");
  const bool none = choice != nullptr && choice->is_object() && choice->value("type", "") == "none";
  const Json* tools = reader.find("tools");
  if (tools == nullptr || none) return {};
  if (!tools->is_array()) return wrong_value("tools", "an array", *tools);
  if (tools->empty()) return {};
  return Error{ErrorCode::kUnsupported, "tools are not offered yet: leave them out or send tool_choice {\"type\":\"none\"}",
               "tools"};
}

// Whether the model is to think first. How long cannot be promised.
Status read_thinking(ObjectReader& reader, ParsedRequest& parsed) {
  const Json* thinking = reader.find("thinking");
  if (thinking == nullptr) return {};
  if (!thinking->is_object()) return wrong_value("thinking", "an object", *thinking);
  ObjectReader inner(*thinking, "thinking");
  LINNET_ASSIGN(const std::string type, inner.required_string("type"));
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    return wrong_value("thinking.type", "enabled, adaptive or disabled", Json(type));
  }
  parsed.reasoning.param = "thinking";
  if (type != "adaptive") parsed.reasoning.enabled = type == "enabled";
  LINNET_ASSIGN(const auto budget, inner.integer("budget_tokens", {.min = 1, .max = std::numeric_limits<std::int32_t>::max()}));
  if (budget) parsed.reasoning.max_tokens = static_cast<std::int32_t>(*budget);
  inner.accept("display");
  for (std::string& path : inner.unknown()) parsed.ignored.push_back(std::move(path));
  return {};
}

Status read_stop_sequences(ObjectReader& reader, std::vector<std::string>& stop) {
  const Json* value = reader.find("stop_sequences");
  if (value == nullptr) return {};
  if (!value->is_array()) return wrong_value("stop_sequences", "an array of strings", *value);
  return read_stop_strings(*value, "stop_sequences", stop);
}

}  // namespace

Result<ParsedRequest> parse_anthropic(std::string_view body, const ParseOptions& options) {
  LINNET_ASSIGN(const Json json, read_body(body));
  ObjectReader reader(json, {});
  ParsedRequest parsed;
  LINNET_RETURN_IF_ERROR(check_tools(reader));
  LINNET_RETURN_IF_ERROR(read_thinking(reader, parsed));
  LINNET_RETURN_IF_ERROR(read_stop_sequences(reader, parsed.request.stop));
  for (const char* name : {"container", "mcp_servers", "context_management"}) {
    const Json* value = reader.find(name);
    if (value == nullptr || (value->is_structured() && value->empty())) continue;
    return Error{ErrorCode::kUnsupported, std::string(name) + " is not offered: leave it out", name};
  }
  LINNET_RETURN_IF_ERROR(read_common_fields(reader, parsed));
  LINNET_RETURN_IF_ERROR(refuse_choices(parsed));
  const Json* messages = reader.find("messages");
  if (messages == nullptr) return missing_value("messages", "an array of at least one message");
  ChatPrompt prompt;
  LINNET_RETURN_IF_ERROR(read_anthropic_messages(*messages, reader.find("system"), prompt, parsed.ignored));
  parsed.request.prompt = std::move(prompt);
  LINNET_RETURN_IF_ERROR(settle_unknown_fields(reader, options, parsed));
  return parsed;
}

}  // namespace linnet::api
