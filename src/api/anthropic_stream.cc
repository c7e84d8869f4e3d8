#include "api/anthropic_stream.h"

#include <utility>

#include "api/errors.h"
#include "api/json_text.h"
#include "base/check.h"

namespace linnet::api {
namespace {

std::string encode_usage(const Usage& usage) {
  return "{\"input_tokens\":" + std::to_string(usage.prompt_tokens - usage.cached_tokens) +
         ",\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":" + std::to_string(usage.cached_tokens) +
         ",\"output_tokens\":" + std::to_string(usage.completion_tokens) + "}";
}

std::string encode_message(const ReplyHead& head, const std::string& content, const std::string& stop, const Usage& usage) {
  return "{\"id\":" + json_string(head.id) + ",\"type\":\"message\",\"role\":\"assistant\",\"model\":" + json_string(head.model) +
         ",\"content\":[" + content + "]," + stop + ",\"usage\":" + encode_usage(usage) + "}";
}

std::string encode_stop(const FinishEvent& finish) {
  CHECK(finish.reason == FinishReason::kStop || finish.reason == FinishReason::kLength);
  const bool matched = finish.reason == FinishReason::kStop && !finish.stop_string.empty();
  const char* reason = finish.reason == FinishReason::kLength ? "max_tokens" : matched ? "stop_sequence" : "end_turn";
  return std::string("\"stop_reason\":\"") + reason +
         "\",\"stop_sequence\":" + (matched ? json_string(finish.stop_string) : "null");
}

}  // namespace

std::string encode_anthropic_reply(const ReplyHead& head, const TextAnswer& text) {
  std::string content;
  if (!text.reasoning.empty()) {
    content = "{\"type\":\"thinking\",\"thinking\":" + json_string(text.reasoning) + ",\"signature\":\"\"}";
  }
  if (!text.content.empty() || content.empty()) {
    content.append(content.empty() ? "" : ",")
        .append("{\"type\":\"text\",\"text\":")
        .append(json_string(text.content))
        .append("}");
  }
  return encode_message(head, content, encode_stop(text.finish), text.finish.usage);
}

std::string encode_token_count(std::int32_t tokens) { return "{\"input_tokens\":" + std::to_string(tokens) + "}"; }

// `rest`: the fields behind "type", beginning with a comma, or nothing.
void AnthropicStream::event(std::string_view type, std::string_view rest) {
  pending_.append("event: ").append(type).append("\ndata: {\"type\":\"").append(type).append("\"").append(rest).append("}\n\n");
}

void AnthropicStream::begin() {
  const Usage usage{.prompt_tokens = prompt_tokens_};
  event("message_start", ",\"message\":" + encode_message(head_, {}, "\"stop_reason\":null,\"stop_sequence\":null", usage));
  ping();
}

void AnthropicStream::open_block(TextChannel channel) {
  open_ = channel;
  const char* block =
      channel == TextChannel::kReasoning ? R"({"type":"thinking","thinking":"","signature":""})" : R"({"type":"text","text":""})";
  event("content_block_start", ",\"index\":" + std::to_string(blocks_++) + ",\"content_block\":" + block);
}

void AnthropicStream::close_block() {
  if (!open_) return;
  const std::string index = ",\"index\":" + std::to_string(blocks_ - 1);
  if (open_ == TextChannel::kReasoning) {
    event("content_block_delta", index + R"(,"delta":{"type":"signature_delta","signature":""})");
  }
  event("content_block_stop", index);
  open_.reset();
}

void AnthropicStream::delta(const TextDelta& delta) {
  if (open_ != delta.channel) {
    close_block();
    open_block(delta.channel);
  }
  const bool reasoning = delta.channel == TextChannel::kReasoning;
  pending_.append("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":");
  pending_.append(std::to_string(blocks_ - 1));
  pending_.append(reasoning ? ",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\""
                            : ",\"delta\":{\"type\":\"text_delta\",\"text\":\"");
  append_json_text(pending_, delta.text);
  pending_ += "\"}}\n\n";
}

void AnthropicStream::finish(const FinishEvent& finish) {
  CHECK(!finish.error);
  if (blocks_ == 0) open_block(TextChannel::kContent);
  close_block();
  event("message_delta", ",\"delta\":{" + encode_stop(finish) + "},\"usage\":" + encode_usage(finish.usage));
  event("message_stop", "");
}

void AnthropicStream::fail(const Error& error) {
  pending_.append("event: error\ndata: ").append(encode_error(error, ErrorShape::kAnthropic)).append("\n\n");
}

void AnthropicStream::ping() { event("ping", ""); }

std::string AnthropicStream::take() { return std::exchange(pending_, {}); }

}  // namespace linnet::api
