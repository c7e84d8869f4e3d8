#include "api/field_rules.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace linnet::api {
namespace {

// What a field may hold without changing the answer; null always may.
enum class Neutral { kNothing, kFalse, kTrue, kZero, kOne, kEmpty, kNone, kNoneOrAuto, kTextModality };

struct Unsupported {
  std::string_view name;
  Neutral neutral;
};

constexpr Unsupported kUnsupported[] = {
    // several answers, logprobs of the prompt
    {"best_of", Neutral::kOne},
    {"use_beam_search", Neutral::kFalse},
    {"prompt_logprobs", Neutral::kNothing},
    // sampling
    {"typical_p", Neutral::kOne},
    {"top_a", Neutral::kZero},
    {"mirostat", Neutral::kZero},
    {"dry_multiplier", Neutral::kZero},
    {"stop_token_ids", Neutral::kEmpty},
    {"bad_words", Neutral::kEmpty},
    {"allowed_token_ids", Neutral::kEmpty},
    {"include_stop_str_in_output", Neutral::kFalse},
    {"skip_special_tokens", Neutral::kTrue},
    // tools
    {"tools", Neutral::kEmpty},
    {"tool_choice", Neutral::kNoneOrAuto},
    {"functions", Neutral::kEmpty},
    {"function_call", Neutral::kNoneOrAuto},
    // what the prompt and the answer are
    {"echo", Neutral::kFalse},
    {"suffix", Neutral::kEmpty},
    {"add_special_tokens", Neutral::kTrue},
    {"add_generation_prompt", Neutral::kTrue},
    {"continue_final_message", Neutral::kFalse},
    {"truncate_prompt_tokens", Neutral::kNothing},
    {"chat_template", Neutral::kNothing},
    {"role_mapping", Neutral::kNothing},
    {"reasoning", Neutral::kNothing},
    {"thinking", Neutral::kNothing},
    {"verbosity", Neutral::kNothing},
    {"modalities", Neutral::kTextModality},
    {"audio", Neutral::kNothing},
    {"web_search_options", Neutral::kNothing},
    {"adapters", Neutral::kNothing},
    {"adapter", Neutral::kNothing},
    {"lora", Neutral::kEmpty},
};

constexpr std::string_view kWithoutEffect[] = {
    "user",
    "metadata",
    "store",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "cache_control",
    "cache_prompt",
    "parallel_tool_calls",
    "prediction",
    "draft_model",
    "num_draft_tokens",
    "betas",
    "return_token_ids",
    "request_id",
};

bool equals_word(const Json& value, std::string_view word) {
  return value.is_string() && value.get_ref<const std::string&>() == word;
}
bool equals_number(const Json& value, double number) { return value.is_number() && value.get<double>() == number; }
bool equals_bool(const Json& value, bool wanted) { return value.is_boolean() && value.get<bool>() == wanted; }
bool is_empty(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value.is_structured() && value.empty();
}

bool is_neutral(const Json& value, Neutral neutral) {
  switch (neutral) {
    case Neutral::kNothing:
      return false;
    case Neutral::kFalse:
      return equals_bool(value, false);
    case Neutral::kTrue:
      return equals_bool(value, true);
    case Neutral::kZero:
      return equals_number(value, 0);
    case Neutral::kOne:
      return equals_number(value, 1);
    case Neutral::kEmpty:
      return is_empty(value);
    case Neutral::kNone:
      return equals_word(value, "none");
    case Neutral::kNoneOrAuto:
      return equals_word(value, "none") || equals_word(value, "auto");
    case Neutral::kTextModality:
      return value.is_array() && value.size() == 1 && equals_word(value[0], "text");
  }
  return false;
}

std::string_view describe(Neutral neutral) {
  switch (neutral) {
    case Neutral::kNothing:
      return "leave it out";
    case Neutral::kFalse:
      return "leave it out or send false";
    case Neutral::kTrue:
      return "leave it out or send true";
    case Neutral::kZero:
      return "leave it out or send 0";
    case Neutral::kOne:
      return "leave it out or send 1";
    case Neutral::kEmpty:
      return "leave it out or send it empty";
    case Neutral::kNone:
      return "leave it out or send \"none\"";
    case Neutral::kNoneOrAuto:
      return "leave it out or send \"none\"";
    case Neutral::kTextModality:
      return "leave it out or send [\"text\"]";
  }
  return {};
}

}  // namespace

Status check_field_rules(ObjectReader& reader) {
  for (const std::string_view name : kWithoutEffect) reader.accept(name);
  for (const auto& [name, neutral] : kUnsupported) {
    if (reader.knows(name)) continue;
    const Json* value = reader.find(name);
    if (value == nullptr || is_neutral(*value, neutral)) continue;
    const std::string path = reader.path_of(name);
    std::string message = path + " is " + describe(*value) + ", which is not offered: " + std::string(describe(neutral));
    return Error{ErrorCode::kUnsupported, std::move(message), path};
  }
  return {};
}

}  // namespace linnet::api
