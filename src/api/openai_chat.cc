#include "api/openai_chat.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/chat_messages.h"
#include "api/json_text.h"
#include "api/openai_logprobs.h"
#include "api/request_body.h"
#include "api/sampling_fields.h"

namespace linnet::api {

Result<ParsedRequest> parse_chat(std::string_view body, const ParseOptions& options) {
  LINNET_ASSIGN(const Json json, read_body(body));
  ObjectReader reader(json, {});
  ParsedRequest parsed;
  LINNET_RETURN_IF_ERROR(read_common_fields(reader, parsed));
  LINNET_RETURN_IF_ERROR(read_chat_logprobs(reader, parsed.request.sampling));
  ChatPrompt prompt;
  const Json* messages = reader.find("messages");
  if (messages == nullptr) {
    return Error{ErrorCode::kInvalidArgument, "messages is missing; it must be an array of at least one message", "messages"};
  }
  LINNET_RETURN_IF_ERROR(read_messages(*messages, prompt, parsed.ignored));
  if (const Json* arguments = reader.find("chat_template_kwargs")) {
    if (!arguments->is_object()) return wrong_value("chat_template_kwargs", "an object", *arguments);
    if (!arguments->empty()) prompt.template_args_json = arguments->dump();
  }
  parsed.request.prompt = std::move(prompt);
  LINNET_RETURN_IF_ERROR(settle_unknown_fields(reader, options, parsed));
  return parsed;
}

std::string encode_chat_reply(const ReplyHead& head, const ReplyOptions& options, std::span<const TextAnswer> answers) {
  std::string reply = encode_head(head, "chat.completion");
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const TextAnswer& answer = answers[i];
    reply += i == 0 ? "{\"index\":" : ",{\"index\":";
    append_json_integer(reply, static_cast<std::int64_t>(i));
    reply += R"(,"message":{"role":"assistant","content":")";
    append_json_text(reply, answer.content);
    if (!answer.reasoning.empty()) {
      reply += R"(","reasoning_content":")";
      append_json_text(reply, answer.reasoning);
      reply += R"(","reasoning":")";
      append_json_text(reply, answer.reasoning);
    }
    reply += R"(","refusal":null},"logprobs":)";
    if (options.logprobs) {
      std::size_t offset = 0;
      append_chat_logprobs(reply, answer.logprobs, offset);
    } else {
      reply += "null";
    }
    reply.append(R"(,"finish_reason":")").append(finish_reason_name(answer.finish.reason)).append("\"}");
  }
  return reply.append("],\"usage\":").append(encode_usage(total_usage(answers))).append("}");
}

OpenAiStream chat_stream(const ReplyHead& head, const ReplyOptions& options) {
  return OpenAiStream({
      .head = encode_head(head, "chat.completion.chunk"),
      .opening = R"(,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})",
      .delta_begin = R"(,"delta":{"content":")",
      .delta_end = R"("},"logprobs":)",
      .finish_begin = R"(,"delta":{},"logprobs":null,"finish_reason":")",
      .append_logprobs = append_chat_logprobs,
      .options = options,
  });
}

}  // namespace linnet::api
