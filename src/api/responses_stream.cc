#include "api/responses_stream.h"

#include <utility>

#include "api/json_text.h"
#include "base/check.h"

namespace linnet::api {
namespace {

// "resp_x" -> "rs_x", "msg_x": an answer has at most one item of each kind.
std::string item_id(const ReplyHead& head, TextChannel channel) {
  const std::string unique = head.id.substr(head.id.find('_') + 1);
  return (channel == TextChannel::kReasoning ? "rs_" : "msg_") + unique;
}

std::string encode_part(TextChannel channel, std::string_view text) {
  if (channel == TextChannel::kReasoning) return "{\"type\":\"summary_text\",\"text\":" + json_string(text) + "}";
  return "{\"type\":\"output_text\",\"text\":" + json_string(text) + ",\"annotations\":[],\"logprobs\":[]}";
}

// `part`: empty for an item that has only begun.
std::string encode_item(const ReplyHead& head, TextChannel channel, std::string_view status, const std::string& part) {
  const bool reasoning = channel == TextChannel::kReasoning;
  return "{\"id\":" + json_string(item_id(head, channel)) + ",\"type\":" + (reasoning ? "\"reasoning\"" : "\"message\"") +
         ",\"status\":" + json_string(status) + (reasoning ? ",\"summary\":[" : ",\"role\":\"assistant\",\"content\":[") + part +
         "]}";
}

std::string encode_usage(const Usage& usage) {
  const std::int64_t total = std::int64_t{usage.prompt_tokens} + usage.completion_tokens;
  return "{\"input_tokens\":" + std::to_string(usage.prompt_tokens) +
         ",\"input_tokens_details\":{\"cached_tokens\":" + std::to_string(usage.cached_tokens) +
         "},\"output_tokens\":" + std::to_string(usage.completion_tokens) +
         ",\"output_tokens_details\":{\"reasoning_tokens\":" + std::to_string(usage.reasoning_tokens) +
         "},\"total_tokens\":" + std::to_string(total) + "}";
}

struct ResponseState {
  std::string_view status;
  std::string error = "null";
  std::string incomplete = "null";
  std::string output{};  // items, separated by commas
  std::string usage = "null";
};

std::string encode_state(const ReplyHead& head, std::string_view echo, const ResponseState& state) {
  std::string response = "{\"id\":" + json_string(head.id) +
                         ",\"object\":\"response\",\"created_at\":" + std::to_string(head.created) +
                         ",\"status\":" + json_string(state.status) + ",\"background\":false,\"error\":" + state.error +
                         ",\"incomplete_details\":" + state.incomplete + ",\"model\":" + json_string(head.model) + ",";
  response.append(echo).append("\"output\":[").append(state.output).append("],\"usage\":").append(state.usage).append("}");
  return response;
}

bool is_complete(const FinishEvent& finish) {
  CHECK(finish.reason == FinishReason::kStop || finish.reason == FinishReason::kLength);
  return finish.reason == FinishReason::kStop;
}

std::string_view status_name(bool complete) { return complete ? "completed" : "incomplete"; }

}  // namespace

EncodedResponse encode_response(const ReplyHead& head, std::string_view echo, const TextAnswer& answer) {
  const bool complete = is_complete(answer.finish);
  const bool has_message = !answer.content.empty() || answer.reasoning.empty();
  ResponseState state{.status = status_name(complete), .usage = encode_usage(answer.finish.usage)};
  if (!complete) state.incomplete = R"({"reason":"max_output_tokens"})";
  if (!answer.reasoning.empty()) {
    // What was thought to its end is complete even if the answer is not.
    state.output = encode_item(head, TextChannel::kReasoning, status_name(complete || has_message),
                               encode_part(TextChannel::kReasoning, answer.reasoning));
  }
  if (has_message) {
    if (!state.output.empty()) state.output += ',';
    state.output +=
        encode_item(head, TextChannel::kContent, status_name(complete), encode_part(TextChannel::kContent, answer.content));
  }
  return {.response = encode_state(head, echo, state), .output = "[" + state.output + "]"};
}

void ResponsesStream::begin_event(std::string_view type) {
  pending_.append("event: ").append(type).append("\ndata: {\"type\":\"").append(type).append("\",\"sequence_number\":");
  pending_.append(std::to_string(events_++));
}

// `rest`: the fields behind those that all events have, beginning with a comma.
void ResponsesStream::event(std::string_view type, const std::string& rest) {
  begin_event(type);
  pending_.append(rest).append("}\n\n");
}

std::string ResponsesStream::place() const {
  return ",\"item_id\":" + json_string(item_id(head_, *open_)) + ",\"output_index\":" + std::to_string(items_ - 1) +
         (open_ == TextChannel::kReasoning ? ",\"summary_index\":0" : ",\"content_index\":0");
}

void ResponsesStream::begin() {
  const std::string response = ",\"response\":" + encode_state(head_, echo_, {.status = "in_progress"});
  event("response.created", response);
  event("response.in_progress", response);
}

void ResponsesStream::open_item(TextChannel channel) {
  open_ = channel;
  ++items_;
  event("response.output_item.added",
        ",\"output_index\":" + std::to_string(items_ - 1) + ",\"item\":" + encode_item(head_, channel, "in_progress", {}));
  event(channel == TextChannel::kReasoning ? "response.reasoning_summary_part.added" : "response.content_part.added",
        place() + ",\"part\":" + encode_part(channel, {}));
}

void ResponsesStream::close_item(bool complete) {
  if (!open_) return;
  const bool reasoning = open_ == TextChannel::kReasoning;
  const std::string& text = reasoning ? answer_.reasoning : answer_.content;
  const std::string part = encode_part(*open_, text);
  event(reasoning ? "response.reasoning_summary_text.done" : "response.output_text.done",
        place() + ",\"text\":" + json_string(text) + (reasoning ? "" : ",\"logprobs\":[]"));
  event(reasoning ? "response.reasoning_summary_part.done" : "response.content_part.done", place() + ",\"part\":" + part);
  event("response.output_item.done", ",\"output_index\":" + std::to_string(items_ - 1) +
                                         ",\"item\":" + encode_item(head_, *open_, status_name(complete), part));
  open_.reset();
}

void ResponsesStream::delta(const TextDelta& delta) {
  if (open_ != delta.channel) {
    close_item(/*complete=*/true);
    open_item(delta.channel);
  }
  const bool reasoning = delta.channel == TextChannel::kReasoning;
  (reasoning ? answer_.reasoning : answer_.content) += delta.text;
  begin_event(reasoning ? "response.reasoning_summary_text.delta" : "response.output_text.delta");
  pending_.append(place()).append(",\"delta\":\"");
  append_json_text(pending_, delta.text);
  pending_ += reasoning ? "\"}\n\n" : "\",\"logprobs\":[]}\n\n";
}

void ResponsesStream::finish(const FinishEvent& finish) {
  CHECK(!finish.error);
  const bool complete = is_complete(finish);
  if (items_ == 0) open_item(TextChannel::kContent);
  close_item(complete);
  answer_.finish = finish;
  response_ = encode_response(head_, echo_, answer_);
  event(complete ? "response.completed" : "response.incomplete", ",\"response\":" + response_.response);
}

void ResponsesStream::fail(const Error& error) {
  ResponseState state{.status = "failed"};
  state.error = "{\"code\":\"server_error\",\"message\":" + json_string(error.message) + "}";
  event("response.failed", ",\"response\":" + encode_state(head_, echo_, state));
  event("error", ",\"code\":\"server_error\",\"message\":" + json_string(error.message) + ",\"param\":null");
}

std::string ResponsesStream::take() { return std::exchange(pending_, {}); }

}  // namespace linnet::api
