#include "runtime/text_source.h"

#include <utility>
#include <variant>

#include "base/check.h"

namespace linnet {

RequestTextSource::RequestTextSource(RequestHandle handle, Tokenizer tokenizer, std::vector<std::string> stop,
                                     std::int32_t prompt_tokens)
    : handle_(std::move(handle)),
      detokenizer_(std::move(tokenizer)),
      stop_matcher_(std::move(stop)),
      prompt_tokens_(prompt_tokens) {}

std::optional<TextEvent> RequestTextSource::take_pending() { return std::exchange(pending_, std::nullopt); }

std::optional<TextEvent> RequestTextSource::try_next() {
  if (auto event = take_pending()) return event;
  while (!finished_) {
    const std::optional<Event> event = handle_.try_next();
    if (!event) return std::nullopt;
    if (auto text = translate(*event)) return text;
  }
  return std::nullopt;
}

TextEvent RequestTextSource::next() {
  if (auto event = take_pending()) return *std::move(event);
  CHECK(!finished_);
  for (;;) {
    if (auto text = translate(handle_.next())) return *std::move(text);
  }
}

std::optional<TextEvent> RequestTextSource::translate(const Event& event) {
  if (const auto* token = std::get_if<TokenEvent>(&event)) return on_token(token->token);
  return on_finish(std::get<FinishEvent>(event));
}

std::optional<TextEvent> RequestTextSource::on_token(TokenId token) {
  ++tokens_read_;
  StopMatch match = stop_matcher_.push(detokenizer_.push(token));
  if (match.matched) {
    finished_ = true;
    handle_.on_ready({});
    handle_.stop();
    pending_ = FinishEvent{.reason = FinishReason::kStop,
                           .usage = {.prompt_tokens = prompt_tokens_, .cached_tokens = 0, .completion_tokens = tokens_read_},
                           .error = {}};
    if (match.text.empty()) return take_pending();
  }
  if (match.text.empty()) return std::nullopt;
  return TextDelta{std::move(match.text)};
}

std::optional<TextEvent> RequestTextSource::on_finish(const FinishEvent& finish) {
  finished_ = true;
  StopMatch match = stop_matcher_.push(detokenizer_.finish());
  FinishEvent last = finish;
  if (match.matched) {
    if (last.reason == FinishReason::kLength) last.reason = FinishReason::kStop;
  } else {
    match.text += stop_matcher_.finish();
  }
  if (match.text.empty()) return last;
  pending_ = std::move(last);
  return TextDelta{std::move(match.text)};
}

}  // namespace linnet
