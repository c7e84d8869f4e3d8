#include "api/openai_completions.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "api/json_text.h"
#include "api/openai_logprobs.h"
#include "api/request_body.h"
#include "api/sampling_fields.h"

namespace linnet::api {
namespace {

using Prompt = std::variant<std::string, std::vector<TokenId>, ChatPrompt>;

constexpr std::string_view kPromptShape = "a string, an array of token ids, or an array of one of these";

Result<Prompt> read_token_ids(const Json& ids, const std::string& path) {
  std::vector<TokenId> tokens;
  tokens.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Json& id = ids[i];
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() <= std::numeric_limits<std::int32_t>::max();
    if (!fits) return wrong_value(path + "[" + std::to_string(i) + "]", "a token id", id);
    tokens.push_back(static_cast<TokenId>(id.get<std::int32_t>()));
  }
  return Prompt(std::move(tokens));
}

Result<Prompt> read_prompt(const Json* prompt) {
  if (prompt == nullptr)
    return Error{ErrorCode::kInvalidArgument, "prompt is missing; it must be " + std::string(kPromptShape), "prompt"};
  if (prompt->is_string()) return Prompt(prompt->get<std::string>());
  if (!prompt->is_array()) return wrong_value("prompt", kPromptShape, *prompt);
  if (prompt->empty())
    return Error{ErrorCode::kInvalidArgument, "prompt is empty; it must be " + std::string(kPromptShape), "prompt"};
  const Json& first = prompt->front();
  if (!first.is_string() && !first.is_array()) return read_token_ids(*prompt, "prompt");
  if (prompt->size() > 1) {
    return Error{
        ErrorCode::kUnsupported,
        "prompt has " + std::to_string(prompt->size()) + " prompts; only 1 is taken in one request: send a request for each",
        "prompt"};
  }
  if (first.is_string()) return Prompt(first.get<std::string>());
  return read_token_ids(first, "prompt[0]");
}

}  // namespace

Result<ParsedRequest> parse_completion(std::string_view body, const ParseOptions& options) {
  LINNET_ASSIGN(const Json json, read_body(body));
  ObjectReader reader(json, {});
  ParsedRequest parsed;
  LINNET_RETURN_IF_ERROR(read_common_fields(reader, parsed));
  LINNET_RETURN_IF_ERROR(read_completion_logprobs(reader, parsed.request.sampling));
  LINNET_ASSIGN(parsed.request.prompt, read_prompt(reader.find("prompt")));
  LINNET_RETURN_IF_ERROR(settle_unknown_fields(reader, options, parsed));
  return parsed;
}

std::string encode_completion_reply(const ReplyHead& head, const ReplyOptions& options, std::span<const TextAnswer> answers) {
  std::string reply = encode_head(head, "text_completion");
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const TextAnswer& answer = answers[i];
    reply += i == 0 ? "{\"index\":" : ",{\"index\":";
    append_json_integer(reply, static_cast<std::int64_t>(i));
    reply += ",\"text\":\"";
    append_json_text(reply, answer.content);
    reply += R"(","logprobs":)";
    if (options.logprobs) {
      std::size_t offset = 0;
      append_completion_logprobs(reply, answer.logprobs, offset);
    } else {
      reply += "null";
    }
    reply.append(R"(,"finish_reason":")").append(finish_reason_name(answer.finish.reason)).append("\"}");
  }
  return reply.append("],\"usage\":").append(encode_usage(total_usage(answers))).append("}");
}

OpenAiStream completion_stream(const ReplyHead& head, const ReplyOptions& options) {
  return OpenAiStream({
      .head = encode_head(head, "text_completion"),
      .opening = {},
      .delta_begin = R"(,"text":")",
      .delta_end = R"(","logprobs":)",
      .finish_begin = R"(,"text":"","logprobs":null,"finish_reason":")",
      .append_logprobs = append_completion_logprobs,
      .options = options,
  });
}

}  // namespace linnet::api
