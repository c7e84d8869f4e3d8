#include "api/reasoning_fields.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <variant>

namespace linnet::api {
namespace {

constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};

Status read_budget(ObjectReader& reader, ReasoningWish& wish) {
  for (const char* name : {"max_reasoning_tokens", "thinking_token_budget", "thinking_budget"}) {
    LINNET_ASSIGN(const auto budget, reader.integer(name, {.min = 0, .max = std::numeric_limits<std::int32_t>::max()}));
    if (!budget) continue;
    wish.param = name;
    wish.max_tokens = static_cast<std::int32_t>(*budget);
  }
  return {};
}

Error unsupported(const ReasoningWish& wish, const std::string& why) {
  return {ErrorCode::kUnsupported, wish.param + " cannot be kept: " + why, wish.param};
}

}  // namespace

Status read_effort(ObjectReader& reader, const char* name, ReasoningWish& wish) {
  LINNET_ASSIGN(const auto effort, reader.string(name));
  if (!effort) return {};
  if (std::find(kEfforts.begin(), kEfforts.end(), *effort) == kEfforts.end()) {
    return wrong_value(reader.path_of(name), "none, minimal, low, medium, high, xhigh or max", Json(*effort));
  }
  wish.param = reader.path_of(name);
  wish.enabled = *effort != "none";
  if (*wish.enabled) wish.effort = *effort;
  return {};
}

Status read_reasoning_fields(ObjectReader& reader, ParsedRequest& parsed) {
  LINNET_RETURN_IF_ERROR(read_effort(reader, "reasoning_effort", parsed.reasoning));
  LINNET_RETURN_IF_ERROR(read_budget(reader, parsed.reasoning));
  const Json* format = reader.find("reasoning_format");
  if (format == nullptr) return {};
  const bool split = *format == "split" || *format == "auto";
  if (!split && *format != "none") return wrong_value(reader.path_of("reasoning_format"), "split or none", *format);
  parsed.request.split_reasoning = split;
  return {};
}

Status apply_reasoning(const ModelCard& model, ParsedRequest& parsed) {
  const ReasoningWish& wish = parsed.reasoning;
  auto* prompt = std::get_if<ChatPrompt>(&parsed.request.prompt);
  if (wish.max_tokens && model.reasons)
    return unsupported(wish, "the length of the reasoning part is the model's own choice; use max_tokens");
  if (!wish.enabled || prompt == nullptr) return {};
  if (!model.reasons) {
    if (!*wish.enabled) return {};
    return unsupported(wish, model.id + " has no reasoning part");
  }
  Json args = Json::object();
  if (!prompt->template_args_json.empty()) {
    LINNET_ASSIGN(args, read_json(prompt->template_args_json));
  }
  if (!model.reasoning_switch && !*wish.enabled) return unsupported(wish, model.id + " always reasons");
  // What chat_template_kwargs says itself stands.
  if (model.reasoning_switch && !args.contains("enable_thinking")) args["enable_thinking"] = *wish.enabled;
  if (model.reasoning_effort && !wish.effort.empty() && !args.contains("reasoning_effort"))
    args["reasoning_effort"] = wish.effort;
  prompt->template_args_json = args.empty() ? std::string() : args.dump();
  return {};
}

Status apply_template_defaults(const std::string& args, ParsedRequest& parsed) {
  auto* prompt = std::get_if<ChatPrompt>(&parsed.request.prompt);
  if (args.empty() || prompt == nullptr) return {};
  LINNET_ASSIGN(Json merged, read_json(args));
  if (!prompt->template_args_json.empty()) {
    LINNET_ASSIGN(const Json asked, read_json(prompt->template_args_json));
    merged.update(asked);
  }
  prompt->template_args_json = merged.dump();
  return {};
}

}  // namespace linnet::api
