#include "api/anthropic_messages.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/object_reader.h"
#include "api/prompt_messages.h"

namespace linnet::api {
namespace {

using Ignored = std::vector<std::string>;

constexpr std::string_view kTextShape = "a string or an array of content blocks";

void append_line(std::string& text, const std::string& line) {
  if (!text.empty()) text += '\n';
  text += line;
}

Error unknown_block(const std::string& path, const std::string& type, std::string_view offered) {
  return {ErrorCode::kUnsupported, path + " has the type " + describe(Json(type)) + "; offered here: " + std::string(offered),
          path + ".type"};
}

// A string, or text blocks joined by line ends.
Result<std::string> read_text(const Json& content, const std::string& path, Ignored& ignored) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return wrong_value(path, kTextShape, content);
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string block_path = indexed(path, i);
    if (!content[i].is_object()) return wrong_value(block_path, "an object with a type", content[i]);
    ObjectReader block(content[i], block_path);
    LINNET_ASSIGN(const std::string type, block.required_string("type"));
    if (type != "text") return unknown_block(block_path, type, "text");
    LINNET_ASSIGN(const std::string part, block.required_string("text"));
    append_line(text, part);
    for (const char* name : {"cache_control", "citations"}) block.accept(name);
    ignore_in_element(block.unknown(), block_path, ignored);
  }
  return text;
}

// The blocks of one message, sorted into what templates see of it.
class Turn {
 public:
  Turn(std::string role, Json& messages, Ignored& ignored) : role_(std::move(role)), messages_(messages), ignored_(ignored) {}

  Status add(const Json& block, const std::string& path) {
    if (!block.is_object()) return wrong_value(path, "an object with a type", block);
    ObjectReader reader(block, path);
    LINNET_ASSIGN(const std::string type, reader.required_string("type"));
    for (const char* name : {"cache_control", "citations", "caller"}) reader.accept(name);
    LINNET_RETURN_IF_ERROR(add_typed(reader, type, path));
    ignore_in_element(reader.unknown(), path, ignored_);
    return {};
  }

  // An assistant's turn without anything in it is left out.
  void end() {
    if (role_ == "assistant" && text_.empty() && reasoning_.empty() && calls_.empty()) return;
    if (role_ == "user" && !has_text_ && has_results_) return;
    Json message = {{"role", role_}, {"content", std::move(text_)}};
    if (!reasoning_.empty()) message["reasoning_content"] = std::move(reasoning_);
    if (!calls_.empty()) message["tool_calls"] = std::move(calls_);
    messages_.push_back(std::move(message));
  }

 private:
  Status add_typed(ObjectReader& block, const std::string& type, const std::string& path) {
    if (type == "text") {
      LINNET_ASSIGN(const std::string text, block.required_string("text"));
      append_line(text_, text);
      has_text_ = true;
      return {};
    }
    if (type == "tool_result" && role_ == "user") return add_result(block);
    if (type == "tool_use" && role_ == "assistant") return add_call(block);
    if (type == "thinking" && role_ == "assistant") {
      LINNET_ASSIGN(const std::string thinking, block.required_string("thinking"));
      append_line(reasoning_, thinking);
      block.accept("signature");
      return {};
    }
    if (type == "redacted_thinking" && role_ == "assistant") {
      block.accept("data");  // nobody here can read it
      return {};
    }
    return unknown_block(path, type, role_ == "user" ? "text, tool_result" : "text, thinking, redacted_thinking, tool_use");
  }

  Status add_result(ObjectReader& block) {
    LINNET_ASSIGN(std::string id, block.required_string("tool_use_id"));
    LINNET_ASSIGN(const auto is_error, block.boolean("is_error"));
    std::string text;
    if (const Json* content = block.find("content")) {
      LINNET_ASSIGN(text, read_text(*content, block.path_of("content"), ignored_));
    }
    if (is_error.value_or(false)) text = text.empty() ? "Error" : "Error: " + text;
    messages_.push_back({{"role", "tool"}, {"content", std::move(text)}, {"tool_call_id", std::move(id)}});
    has_results_ = true;
    return {};
  }

  Status add_call(ObjectReader& block) {
    LINNET_ASSIGN(const std::optional<std::string> id, block.string("id"));
    LINNET_ASSIGN(std::string name, block.required_string("name"));
    const Json* input = block.find("input");
    if (input != nullptr && !input->is_object()) return wrong_value(block.path_of("input"), "an object", *input);
    calls_.push_back(tool_call(id.value_or(""), std::move(name), input == nullptr ? Json::object() : *input));
    return {};
  }

  const std::string role_;
  Json& messages_;
  Ignored& ignored_;
  std::string text_;
  std::string reasoning_;
  Json calls_ = Json::array();
  bool has_text_ = false;
  bool has_results_ = false;
};

Status read_message(const Json& message, std::size_t index, Json& result, Ignored& ignored) {
  const std::string path = indexed("messages", index);
  if (!message.is_object()) return wrong_value(path, "an object", message);
  ObjectReader reader(message, path);
  LINNET_ASSIGN(const std::string role, reader.required_string("role"));
  if (role != "user" && role != "assistant" && role != "system") {
    return wrong_value(path + ".role", "user, assistant or system", Json(role));
  }
  const Json* content = reader.find("content");
  const std::string content_path = path + ".content";
  if (content == nullptr && role != "assistant") return missing_value(content_path, kTextShape);
  ignore_in_element(reader.unknown(), path, ignored);
  if (role == "system" || (content != nullptr && !content->is_array())) {
    LINNET_ASSIGN(std::string text, read_text(*content, content_path, ignored));
    if (role == "assistant" && text.empty()) return {};
    result.push_back({{"role", role}, {"content", std::move(text)}});
    return {};
  }
  Turn turn(role, result, ignored);
  for (std::size_t i = 0; content != nullptr && i < content->size(); ++i) {
    LINNET_RETURN_IF_ERROR(turn.add((*content)[i], indexed(content_path, i)));
  }
  turn.end();
  return {};
}

}  // namespace

Status read_anthropic_messages(const Json& messages, const Json* system, ChatPrompt& prompt, Ignored& ignored) {
  if (!messages.is_array() || messages.empty()) return wrong_value("messages", "an array of at least one message", messages);
  Json result = Json::array();
  if (system != nullptr) {
    LINNET_ASSIGN(std::string text, read_text(*system, "system", ignored));
    if (!text.empty()) result.push_back({{"role", "system"}, {"content", std::move(text)}});
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    LINNET_RETURN_IF_ERROR(read_message(messages[i], i, result, ignored));
  }
  if (messages.back()["role"] == "assistant") {
    const std::string last = indexed("messages", messages.size() - 1);
    return Error{ErrorCode::kUnsupported,
                 last + " is the assistant's: going on with a begun answer is not offered; end with a user's message",
                 last + ".role"};
  }
  set_messages(result, prompt);
  return {};
}

}  // namespace linnet::api
