#include "api/openai_stream.h"

#include <utility>

#include "api/errors.h"
#include "api/json_text.h"
#include "base/check.h"

namespace linnet::api {
namespace {

// The first choice says what the prompt cost.
void add_usage(Usage& total, const Usage& usage, std::int32_t choice) {
  if (choice == 0) {
    total.prompt_tokens = usage.prompt_tokens;
    total.cached_tokens = usage.cached_tokens;
  }
  total.completion_tokens += usage.completion_tokens;
  total.reasoning_tokens += usage.reasoning_tokens;
}

}  // namespace

OpenAiStream::OpenAiStream(StreamFrames frames) : frames_(std::move(frames)) {
  frames_.head.insert(0, "data: ");
  close_ = frames_.options.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
  unfinished_ = frames_.options.choices;
  offsets_.resize(static_cast<std::size_t>(unfinished_));
}

void OpenAiStream::open_choice(std::int32_t choice) {
  pending_ += frames_.head;
  pending_ += "{\"index\":";
  append_json_integer(pending_, choice);
}
void OpenAiStream::close_choice() { pending_ += close_; }

void OpenAiStream::begin() {
  if (frames_.opening.empty()) return;
  for (std::int32_t choice = 0; choice < frames_.options.choices; ++choice) {
    open_choice(choice);
    pending_ += frames_.opening;
    close_choice();
  }
}

void OpenAiStream::delta(std::int32_t choice, const TextDelta& delta) {
  open_choice(choice);
  if (delta.channel == TextChannel::kReasoning) {
    // Under both names that clients look for.
    pending_ += R"(,"delta":{"reasoning_content":")";
    append_json_text(pending_, delta.text);
    pending_ += R"(","reasoning":")";
  } else {
    pending_ += frames_.delta_begin;
  }
  append_json_text(pending_, delta.text);
  pending_ += frames_.delta_end;
  if (frames_.options.logprobs) {
    frames_.append_logprobs(pending_, delta.logprobs, offsets_[static_cast<std::size_t>(choice)]);
  } else {
    pending_ += "null";
  }
  pending_ += ",\"finish_reason\":null}";
  close_choice();
}

void OpenAiStream::finish(std::int32_t choice, const FinishEvent& finish) {
  CHECK(!finish.error && unfinished_ > 0);
  open_choice(choice);
  pending_.append(frames_.finish_begin).append(finish_reason_name(finish.reason)).append("\"}");
  close_choice();
  add_usage(usage_, finish.usage, choice);
  if (--unfinished_ > 0) return;
  if (frames_.options.include_usage) {
    pending_.append(frames_.head).append("],\"usage\":").append(encode_usage(usage_)).append("}\n\n");
  }
  pending_ += "data: [DONE]\n\n";
}

void OpenAiStream::fail(const Error& error) { pending_.append("data: ").append(encode_error(error)).append("\n\n"); }

std::string OpenAiStream::take() { return std::exchange(pending_, {}); }

std::string_view finish_reason_name(FinishReason reason) {
  CHECK(reason == FinishReason::kStop || reason == FinishReason::kLength);
  return reason == FinishReason::kStop ? "stop" : "length";
}

std::string encode_usage(const Usage& usage) {
  const std::int64_t total = std::int64_t{usage.prompt_tokens} + usage.completion_tokens;
  std::string reasoning;
  if (usage.reasoning_tokens > 0) {
    reasoning = ",\"completion_tokens_details\":{\"reasoning_tokens\":" + std::to_string(usage.reasoning_tokens) + "}";
  }
  return "{\"prompt_tokens\":" + std::to_string(usage.prompt_tokens) +
         ",\"completion_tokens\":" + std::to_string(usage.completion_tokens) + ",\"total_tokens\":" + std::to_string(total) +
         ",\"prompt_tokens_details\":{\"cached_tokens\":" + std::to_string(usage.cached_tokens) + "}" + reasoning + "}";
}

Usage total_usage(std::span<const TextAnswer> answers) {
  Usage total;
  for (std::size_t i = 0; i < answers.size(); ++i) add_usage(total, answers[i].finish.usage, static_cast<std::int32_t>(i));
  return total;
}

ReplyOptions reply_options_of(const ParsedRequest& parsed) {
  return {.choices = parsed.request.choices,
          .logprobs = parsed.request.sampling.logprobs.has_value(),
          .include_usage = parsed.include_usage};
}

}  // namespace linnet::api
