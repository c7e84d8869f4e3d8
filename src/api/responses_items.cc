#include "api/responses_items.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/object_reader.h"
#include "api/prompt_messages.h"

namespace linnet::api {
namespace {

constexpr std::array<std::string_view, 4> kRoles = {"system", "developer", "user", "assistant"};

Result<std::string> read_part(const Json& part, const std::string& path) {
  if (!part.is_object()) return wrong_value(path, "an object with a type", part);
  ObjectReader reader(part, path);
  LINNET_ASSIGN(const std::string type, reader.required_string("type"));
  if (type == "refusal") return reader.required_string("refusal");
  for (const char* text : {"input_text", "output_text", "text", "summary_text", "reasoning_text"}) {
    if (type == text) return reader.required_string("text");
  }
  return Error{ErrorCode::kUnsupported, path + " has the type " + describe(Json(type)) + "; only text is offered",
               path + ".type"};
}

// A string, or parts put together; absent: nothing.
Result<std::string> read_parts(const Json* content, const std::string& path) {
  if (content == nullptr) return std::string();
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) return wrong_value(path, "a string or an array of parts", *content);
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    LINNET_ASSIGN(const std::string part, read_part((*content)[i], indexed(path, i)));
    text += part;
  }
  return text;
}

class ItemReader {
 public:
  ItemReader(Json& messages, std::vector<std::string>& ignored) : messages_(messages), ignored_(ignored) {}

  Status add(const Json& item, const std::string& path) {
    if (!item.is_object()) return wrong_value(path, "an object", item);
    ObjectReader reader(item, path);
    for (const char* name : {"id", "status", "phase", "encrypted_content", "cache_control"}) reader.accept(name);
    LINNET_ASSIGN(const auto type, reader.string("type"));
    LINNET_RETURN_IF_ERROR(add_typed(reader, type.value_or("message"), path));
    ignore_in_element(reader.unknown(), path, ignored_);
    return {};
  }

 private:
  Status add_typed(ObjectReader& item, const std::string& type, const std::string& path) {
    if (type == "message") return add_message(item);
    if (type == "function_call") return add_call(item);
    if (type == "function_call_output") return add_output(item);
    if (type == "reasoning") return add_reasoning(item);
    return Error{
        ErrorCode::kUnsupported,
        path + " has the type " + describe(Json(type)) + "; offered: message, function_call, function_call_output, reasoning",
        path + ".type"};
  }

  Status add_message(ObjectReader& item) {
    LINNET_ASSIGN(std::string role, item.required_string("role"));
    if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
      return wrong_value(item.path_of("role"), "system, developer, user or assistant", Json(role));
    }
    const Json* content = item.find("content");
    if (content == nullptr && role != "assistant") return missing_value(item.path_of("content"), "a string or an array of parts");
    LINNET_ASSIGN(std::string text, read_parts(content, item.path_of("content")));
    if (role == "assistant" && turn_open_ && turn()["content"].get_ref<const std::string&>().empty()) {
      turn()["content"] = std::move(text);
      return {};
    }
    if (role == "developer") role = "system";
    turn_open_ = role == "assistant";
    messages_.push_back({{"role", std::move(role)}, {"content", std::move(text)}});
    return {};
  }

  Status add_call(ObjectReader& item) {
    LINNET_ASSIGN(std::string id, item.required_string("call_id"));
    LINNET_ASSIGN(std::string name, item.required_string("name"));
    LINNET_ASSIGN(std::string arguments, item.required_string("arguments"));
    open_turn();
    turn()["tool_calls"].push_back(tool_call(std::move(id), std::move(name), read_arguments(std::move(arguments))));
    return {};
  }

  Status add_output(ObjectReader& item) {
    LINNET_ASSIGN(std::string id, item.required_string("call_id"));
    LINNET_ASSIGN(std::string text, read_parts(item.find("output"), item.path_of("output")));
    turn_open_ = false;
    messages_.push_back({{"role", "tool"}, {"content", std::move(text)}, {"tool_call_id", std::move(id)}});
    return {};
  }

  Status add_reasoning(ObjectReader& item) {
    LINNET_ASSIGN(std::string text, read_parts(item.find("content"), item.path_of("content")));
    LINNET_ASSIGN(std::string summary, read_parts(item.find("summary"), item.path_of("summary")));
    if (text.empty()) text = std::move(summary);
    if (text.empty()) return {};
    turn_open_ = false;  // thoughts come before what is said
    open_turn();
    turn()["reasoning_content"] = std::move(text);
    return {};
  }

  Json& turn() { return messages_.back(); }
  void open_turn() {
    if (!std::exchange(turn_open_, true)) messages_.push_back({{"role", "assistant"}, {"content", ""}});
  }

  Json& messages_;
  std::vector<std::string>& ignored_;
  bool turn_open_ = false;  // messages_ ends with the assistant's message, which may take more
};

}  // namespace

Status append_items(const Json& items, const std::string& path, Json& messages, std::vector<std::string>& ignored) {
  ItemReader reader(messages, ignored);
  for (std::size_t i = 0; i < items.size(); ++i) LINNET_RETURN_IF_ERROR(reader.add(items[i], indexed(path, i)));
  return {};
}

}  // namespace linnet::api
