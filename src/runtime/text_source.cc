#include "runtime/text_source.h"

#include <utility>
#include <variant>

#include "base/check.h"

namespace linnet {

RequestTextSource::RequestTextSource(RequestHandle handle, TextPipeline pipeline, std::int32_t prompt_tokens)
    : handle_(std::move(handle)),
      tokenizer_(pipeline.tokenizer),
      detokenizer_(std::move(pipeline.tokenizer)),
      markers_(std::move(pipeline.reasoning)),
      stop_matcher_(std::move(pipeline.stop)),
      logprobs_(tokenizer_),
      prompt_tokens_(prompt_tokens) {
  if (markers_) splitter_.emplace(*markers_, pipeline.start);
}

std::optional<TextEvent> RequestTextSource::take_pending() {
  if (pending_.empty()) return std::nullopt;
  TextEvent event = std::move(pending_.front());
  pending_.pop_front();
  return event;
}

std::optional<TextEvent> RequestTextSource::try_next() {
  while (pending_.empty() && !finished_) {
    const std::optional<Event> event = handle_.try_next();
    if (!event) return std::nullopt;
    translate(*event);
  }
  return take_pending();
}

TextEvent RequestTextSource::next() {
  CHECK(!pending_.empty() || !finished_);
  while (pending_.empty()) translate(handle_.next());
  return *take_pending();
}

void RequestTextSource::translate(const Event& event) {
  if (const auto* token = std::get_if<TokenEvent>(&event)) {
    on_token(*token);
  } else {
    on_finish(std::get<FinishEvent>(event));
  }
}

void RequestTextSource::emit(std::string text, TextChannel channel) {
  if (text.empty()) return;
  text_shown_ += text.size();
  std::vector<TextLogprobs> logprobs = splitter_ ? logprobs_.take_all() : logprobs_.take_before(text_shown_);
  pending_.push_back(TextDelta{.text = std::move(text), .channel = channel, .logprobs = std::move(logprobs)});
}

bool RequestTextSource::emit_content(std::string_view text) {
  StopMatch match = stop_matcher_.push(text);
  emit(std::move(match.text), TextChannel::kContent);
  stop_string_ = std::move(match.stop);
  return match.matched;
}

SplitText RequestTextSource::split(std::string_view text) {
  if (!splitter_) return {.reasoning = {}, .content = std::string(text)};
  const bool was_inside = splitter_->inside();
  SplitText parts = splitter_->push(text);
  if (was_inside || splitter_->inside()) reasoning_tokens_ = tokens_read_;
  return parts;
}

void RequestTextSource::on_token(const TokenEvent& event) {
  const TokenId token = event.token;
  ++tokens_read_;
  std::string text = detokenizer_.push(token);
  if (event.logprobs) logprobs_.push(token, *event.logprobs, text_made_);
  text_made_ += text.size();
  // Some vocabularies have the markers as control tokens, which are no text otherwise.
  if (markers_ && tokenizer_.is_special(token)) {
    const std::string_view name = tokenizer_.token_name(token);
    if (name == markers_->begin || name == markers_->end) text += name;
  }
  SplitText parts = split(text);
  emit(std::move(parts.reasoning), TextChannel::kReasoning);
  if (parts.content.empty() || !emit_content(parts.content)) return;
  finished_ = true;
  handle_.on_ready({});
  handle_.stop();
  pending_.push_back(FinishEvent{.reason = FinishReason::kStop,
                                 .usage = {.prompt_tokens = prompt_tokens_,
                                           .cached_tokens = handle_.cached_tokens(),
                                           .completion_tokens = tokens_read_,
                                           .reasoning_tokens = reasoning_tokens_},
                                 .error = {},
                                 .stop_string = std::move(stop_string_)});
}

void RequestTextSource::on_finish(const FinishEvent& finish) {
  finished_ = true;
  SplitText parts = split(detokenizer_.finish());
  if (splitter_) {
    SplitText rest = splitter_->finish();
    parts.reasoning += rest.reasoning;
    parts.content += rest.content;
  }
  emit(std::move(parts.reasoning), TextChannel::kReasoning);
  FinishEvent last = finish;
  last.usage.reasoning_tokens = reasoning_tokens_;
  if (emit_content(parts.content)) {
    if (last.reason == FinishReason::kLength) last.reason = FinishReason::kStop;
    last.stop_string = std::move(stop_string_);
  } else {
    emit(stop_matcher_.finish(), TextChannel::kContent);
    // Tokens without text at the end.
    std::vector<TextLogprobs> rest = logprobs_.take_all();
    if (!rest.empty()) pending_.push_back(TextDelta{.text = {}, .logprobs = std::move(rest)});
  }
  pending_.push_back(std::move(last));
}

}  // namespace linnet
