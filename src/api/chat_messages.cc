#include "api/chat_messages.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/object_reader.h"
#include "api/prompt_messages.h"

namespace linnet::api {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant", "tool"};

Result<std::string> read_role(ObjectReader& message) {
  LINNET_ASSIGN(std::string role, message.required_string("role"));
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    return wrong_value(message.path_of("role"), "system, developer, user, assistant or tool", Json(role));
  }
  if (role == "developer") role = "system";
  return role;
}

Result<std::string> read_text_part(const Json& part, const std::string& path) {
  if (!part.is_object()) return wrong_value(path, "an object with a type", part);
  ObjectReader reader(part, path);
  LINNET_ASSIGN(const std::string type, reader.required_string("type"));
  if (type == "refusal") return reader.required_string("refusal");
  if (type != "text" && type != "input_text" && type != "output_text") {
    return Error{ErrorCode::kUnsupported, path + " has the type " + describe(Json(type)) + "; only \"text\" is offered",
                 path + ".type"};
  }
  return reader.required_string("text");
}

// `optional`: the role may go without.
Result<std::string> read_content(ObjectReader& message, bool optional) {
  const Json* content = message.find("content");
  const std::string path = message.path_of("content");
  if (content == nullptr) {
    if (!optional) return missing_value(path, "a string or an array of text parts");
    return std::string();
  }
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return wrong_value(path, "a string or an array of text parts", *content);
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    LINNET_ASSIGN(const std::string part, read_text_part((*content)[i], indexed(path, i)));
    text += part;
  }
  return text;
}

Result<Json> read_tool_call(const Json& call, const std::string& path) {
  if (!call.is_object()) return wrong_value(path, "an object", call);
  ObjectReader reader(call, path);
  LINNET_ASSIGN(const std::optional<std::string> id, reader.string("id"));
  LINNET_ASSIGN(const std::optional<std::string> type, reader.string("type"));
  if (type && *type != "function") return wrong_value(path + ".type", "\"function\"", Json(*type));
  const Json* function = reader.find("function");
  if (function == nullptr) return missing_value(path + ".function", "an object");
  if (!function->is_object()) return wrong_value(path + ".function", "an object", *function);
  ObjectReader inner(*function, path + ".function");
  LINNET_ASSIGN(std::string name, inner.required_string("name"));
  LINNET_ASSIGN(std::string arguments, inner.required_string("arguments"));
  return tool_call(id.value_or(""), std::move(name), read_arguments(std::move(arguments)));
}

Status read_tool_calls(ObjectReader& message, Json& result) {
  const Json* calls = message.find("tool_calls");
  if (calls == nullptr) return {};
  const std::string path = message.path_of("tool_calls");
  if (!calls->is_array()) return wrong_value(path, "an array", *calls);
  if (calls->empty()) return {};
  Json list = Json::array();
  for (std::size_t i = 0; i < calls->size(); ++i) {
    LINNET_ASSIGN(Json call, read_tool_call((*calls)[i], indexed(path, i)));
    list.push_back(std::move(call));
  }
  result["tool_calls"] = std::move(list);
  return {};
}

// Fields that would have to be shown to the model.
Status refuse_unsupported(ObjectReader& message) {
  for (const std::string_view name : {"function_call", "audio", "images", "videos"}) {
    const Json* value = message.find(name);
    if (value == nullptr || (value->is_structured() && value->empty())) continue;
    return Error{ErrorCode::kUnsupported, message.path_of(name) + " is not offered: leave it out", message.path_of(name)};
  }
  return {};
}

Result<Json> read_message(const Json& message, std::size_t index, std::vector<std::string>& ignored) {
  const std::string path = indexed("messages", index);
  if (!message.is_object()) return wrong_value(path, "an object", message);
  ObjectReader reader(message, path);
  Json result = Json::object();
  LINNET_ASSIGN(const std::string role, read_role(reader));
  result["role"] = role;
  LINNET_ASSIGN(result["content"], read_content(reader, /*optional=*/role == "assistant" || role == "tool"));
  for (const std::string_view name : {"name", "reasoning_content", "tool_call_id"}) {
    LINNET_ASSIGN(std::optional<std::string> value, reader.string(name));
    if (value) result[std::string(name)] = *std::move(value);
  }
  LINNET_ASSIGN(std::optional<std::string> reasoning, reader.string("reasoning"));  // the same under its other name
  if (reasoning && !result.contains("reasoning_content")) result["reasoning_content"] = *std::move(reasoning);
  LINNET_RETURN_IF_ERROR(read_tool_calls(reader, result));
  LINNET_RETURN_IF_ERROR(refuse_unsupported(reader));
  for (const std::string_view name : {"refusal", "annotations", "id", "cache_control"}) reader.accept(name);  // without effect
  ignore_in_element(reader.unknown(), path, ignored);
  return result;
}

}  // namespace

Status read_messages(const Json& messages, ChatPrompt& prompt, std::vector<std::string>& ignored) {
  if (!messages.is_array() || messages.empty()) return wrong_value("messages", "an array of at least one message", messages);
  Json result = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    LINNET_ASSIGN(Json message, read_message(messages[i], i, ignored));
    result.push_back(std::move(message));
  }
  set_messages(result, prompt);
  return {};
}

}  // namespace linnet::api
