#include "api/prompt_messages.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace linnet::api {
namespace {

bool has_role(const Json& message, std::string_view role) { return message["role"].get_ref<const std::string&>() == role; }

void append_text(Json& message, const char* field, const std::string& text) {
  auto& whole = message[field].get_ref<std::string&>();
  if (!whole.empty() && !text.empty()) whole += "\n\n";
  whole += text;
}

bool may_join(const Json& last, const Json& next) {
  return last["role"] == next["role"] && (has_role(last, "user") || has_role(last, "assistant"));
}

void join(Json& last, const Json& next) {
  append_text(last, "content", next["content"].get_ref<const std::string&>());
  if (const auto reasoning = next.find("reasoning_content"); reasoning != next.end()) {
    if (!last.contains("reasoning_content")) last["reasoning_content"] = "";
    append_text(last, "reasoning_content", reasoning->get_ref<const std::string&>());
  }
  if (const auto calls = next.find("tool_calls"); calls != next.end()) {
    for (const Json& call : *calls) last["tool_calls"].push_back(call);
  }
}

// System first and once, no neighbours of one role.
Json strict_messages(const Json& messages) {
  Json system = {{"role", "system"}, {"content", ""}};
  Json turns = Json::array();
  bool any_system = false;
  for (const Json& message : messages) {
    if (has_role(message, "system")) {
      any_system = true;
      append_text(system, "content", message["content"].get_ref<const std::string&>());
    } else if (!turns.empty() && may_join(turns.back(), message)) {
      join(turns.back(), message);
    } else {
      turns.push_back(message);
    }
  }
  if (any_system) turns.insert(turns.begin(), std::move(system));
  return turns;
}

// `strict` without its system message, whose text goes to the first user message.
Json without_system(Json strict) {
  const std::string text = strict[0]["content"].get<std::string>();
  strict.erase(0);
  for (Json& message : strict) {
    if (!has_role(message, "user")) continue;
    std::string content = message["content"].get<std::string>();
    message["content"] = text;
    append_text(message, "content", content);
    return strict;
  }
  strict.insert(strict.begin(), Json{{"role", "user"}, {"content", text}});
  return strict;
}

}  // namespace

Json tool_call(std::string id, std::string name, Json arguments) {
  Json call = {{"type", "function"}, {"function", {{"name", std::move(name)}, {"arguments", std::move(arguments)}}}};
  if (!id.empty()) call["id"] = std::move(id);
  return call;
}

Json read_arguments(std::string arguments) {
  Result<Json> parsed = read_json(arguments);
  if (parsed.ok() && parsed->is_object()) return *std::move(parsed);
  return Json(std::move(arguments));
}

void set_messages(const Json& messages, ChatPrompt& prompt) {
  prompt.messages_json = messages.dump();
  prompt.fallback_messages_json.clear();
  Json strict = strict_messages(messages);
  if (strict != messages) prompt.fallback_messages_json.push_back(strict.dump());
  if (!strict.empty() && has_role(strict[0], "system")) {
    prompt.fallback_messages_json.push_back(without_system(std::move(strict)).dump());
  }
}

}  // namespace linnet::api
