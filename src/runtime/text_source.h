// One request's tokens as text: detokenizer, then stop matcher.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "linnet/engine.h"
#include "linnet/text_engine.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace linnet {

// Runs on the consumer's thread, so that text costs the engine nothing.
//   1. A stop string ends the answer with kStop; tokens that the engine made beyond it are neither shown nor counted.
//   2. What a delta holds depends on the tokens alone.
class RequestTextSource final : public TextSource {
 public:
  RequestTextSource(RequestHandle handle, Tokenizer tokenizer, std::vector<std::string> stop, std::int32_t prompt_tokens);

  std::optional<TextEvent> try_next() override;
  TextEvent next() override;
  void on_ready(std::function<void()> ready) override { handle_.on_ready(std::move(ready)); }
  void cancel() override { handle_.cancel(); }
  std::int32_t prompt_tokens() const override { return prompt_tokens_; }

 private:
  std::optional<TextEvent> take_pending();
  // What `event` means in text; empty if it says nothing yet.
  std::optional<TextEvent> translate(const Event& event);
  std::optional<TextEvent> on_token(TokenId token);
  std::optional<TextEvent> on_finish(const FinishEvent& finish);

  RequestHandle handle_;
  Detokenizer detokenizer_;
  StopMatcher stop_matcher_;
  std::int32_t prompt_tokens_;
  std::int32_t tokens_read_ = 0;
  std::optional<TextEvent> pending_;  // a final event behind the delta that was handed out first
  bool finished_ = false;
};

}  // namespace linnet
