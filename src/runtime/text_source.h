// One request's tokens as text: detokenizer, reasoning splitter, stop matcher.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/engine.h"
#include "linnet/text_engine.h"
#include "runtime/logprob_queue.h"
#include "text/detokenizer.h"
#include "text/reasoning_splitter.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace linnet {

struct TextPipeline {
  Tokenizer tokenizer;
  std::vector<std::string> stop;
  std::optional<ReasoningMarkers> reasoning;  // absent: all text is content
  ReasoningSplitter::Start start = ReasoningSplitter::Start::kBefore;
};

// Runs on the consumer's thread, so that text costs the engine nothing.
//   1. A stop string ends the answer with kStop; tokens that the engine made beyond it are neither shown nor counted.
//   2. What a delta holds depends on the tokens alone.
//   3. Logprobs come with the delta in which their token's text begins; where reasoning is told from content, with the next
//   delta.
//   4. Stop strings are looked for in the content: where the reasoning ends does not depend on them.
class RequestTextSource final : public TextSource {
 public:
  RequestTextSource(RequestHandle handle, TextPipeline pipeline, std::int32_t prompt_tokens);

  std::optional<TextEvent> try_next() override;
  TextEvent next() override;
  void on_ready(std::function<void()> ready) override { handle_.on_ready(std::move(ready)); }
  void cancel() override { handle_.cancel(); }
  std::int32_t prompt_tokens() const override { return prompt_tokens_; }

 private:
  std::optional<TextEvent> take_pending();
  // What `event` means in text joins pending_.
  void translate(const Event& event);
  void on_token(const TokenEvent& event);
  void on_finish(const FinishEvent& finish);
  // A text as the model wrote it, markers included.
  SplitText split(std::string_view text);
  void emit(std::string text, TextChannel channel);
  // True if a stop string ended the answer.
  bool emit_content(std::string_view text);

  RequestHandle handle_;
  Tokenizer tokenizer_;
  Detokenizer detokenizer_;
  std::optional<ReasoningMarkers> markers_;
  std::optional<ReasoningSplitter> splitter_;  // present with markers_
  StopMatcher stop_matcher_;
  LogprobQueue logprobs_;
  std::size_t text_made_ = 0;   // bytes that tokens became so far
  std::size_t text_shown_ = 0;  // and bytes that deltas have
  std::string stop_string_;     // that ended the answer
  std::int32_t prompt_tokens_;
  std::int32_t tokens_read_ = 0;
  std::int32_t reasoning_tokens_ = 0;
  std::deque<TextEvent> pending_;  // at most one delta of each channel and the final event
  bool finished_ = false;          // the engine's part is over
};

}  // namespace linnet
