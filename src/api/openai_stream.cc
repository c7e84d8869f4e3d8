#include "api/openai_stream.h"

#include <utility>

#include "api/errors.h"
#include "api/json_text.h"
#include "base/check.h"

namespace linnet::api {

OpenAiStream::OpenAiStream(StreamFrames frames) : frames_(std::move(frames)) {
  frames_.head.insert(0, "data: ");
  close_ = frames_.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
}

void OpenAiStream::open_chunk() { pending_ += frames_.head; }
void OpenAiStream::close_chunk() { pending_ += close_; }

void OpenAiStream::begin() {
  if (frames_.opening.empty()) return;
  open_chunk();
  pending_ += frames_.opening;
  close_chunk();
}

void OpenAiStream::delta(std::string_view text) {
  open_chunk();
  pending_ += frames_.delta_begin;
  append_json_text(pending_, text);
  pending_ += frames_.delta_end;
  close_chunk();
}

void OpenAiStream::finish(const FinishEvent& finish) {
  CHECK(!finish.error);
  open_chunk();
  pending_.append(frames_.finish_begin).append(finish_reason_name(finish.reason)).append(frames_.finish_end);
  close_chunk();
  if (frames_.include_usage) {
    open_chunk();
    pending_.append("],\"usage\":").append(encode_usage(finish.usage)).append("}\n\n");
  }
  pending_ += "data: [DONE]\n\n";
}

void OpenAiStream::fail(const Error& error) { pending_.append("data: ").append(encode_error(error)).append("\n\n"); }

void OpenAiStream::keep_alive() { pending_ += ": keep-alive\n\n"; }

std::string OpenAiStream::take() { return std::exchange(pending_, {}); }

std::string_view finish_reason_name(FinishReason reason) {
  CHECK(reason == FinishReason::kStop || reason == FinishReason::kLength);
  return reason == FinishReason::kStop ? "stop" : "length";
}

std::string encode_usage(const Usage& usage) {
  const std::int64_t total = std::int64_t{usage.prompt_tokens} + usage.completion_tokens;
  return "{\"prompt_tokens\":" + std::to_string(usage.prompt_tokens) +
         ",\"completion_tokens\":" + std::to_string(usage.completion_tokens) + ",\"total_tokens\":" + std::to_string(total) +
         ",\"prompt_tokens_details\":{\"cached_tokens\":" + std::to_string(usage.cached_tokens) + "}}";
}

}  // namespace linnet::api
