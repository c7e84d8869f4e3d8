#include "api/openai_chat.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "api/chat_messages.h"
#include "api/json_text.h"
#include "api/request_body.h"

namespace linnet::api {

Result<ParsedRequest> parse_chat(std::string_view body, const ParseOptions& options) {
  LINNET_ASSIGN(const Json json, read_body(body));
  ObjectReader reader(json, {});
  ParsedRequest parsed;
  LINNET_RETURN_IF_ERROR(read_common_fields(reader, parsed));
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

std::string encode_chat_reply(const ReplyHead& head, std::string_view text, const FinishEvent& finish) {
  std::string reply = encode_head(head, "chat.completion");
  reply += "{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"";
  append_json_text(reply, text);
  reply += "\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":\"";
  reply.append(finish_reason_name(finish.reason)).append("\"}],\"usage\":").append(encode_usage(finish.usage));
  return reply += '}';
}

OpenAiStream chat_stream(const ReplyHead& head, bool include_usage) {
  return OpenAiStream({
      .head = encode_head(head, "chat.completion.chunk"),
      .opening = R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})",
      .delta_begin = R"({"index":0,"delta":{"content":")",
      .delta_end = R"("},"logprobs":null,"finish_reason":null})",
      .finish_begin = R"({"index":0,"delta":{},"logprobs":null,"finish_reason":")",
      .finish_end = R"("})",
      .include_usage = include_usage,
  });
}

}  // namespace linnet::api
