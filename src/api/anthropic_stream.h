// Answers in Anthropic's Messages protocol, whole and as events. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/reply_head.h"
#include "linnet/text_engine.h"

namespace linnet::api {

// The whole reply to a request that was not streamed. `text.finish` has no error.
std::string encode_anthropic_reply(const ReplyHead& head, const TextAnswer& text);

// {"input_tokens":..}
std::string encode_token_count(std::int32_t tokens);

// One streamed answer. Order of calls: begin, then delta and ping in any order, then finish or fail. Blocks are numbered in the
// order in which they begin; each is closed before the next; an answer without any text has one empty text block.
class AnthropicStream {
 public:
  AnthropicStream(const ReplyHead& head, std::int32_t prompt_tokens) : head_(head), prompt_tokens_(prompt_tokens) {}

  void begin();
  void delta(const TextDelta& delta);
  void finish(const FinishEvent& finish);  // without an error
  void fail(const Error& error);
  void ping();

  bool empty() const { return pending_.empty(); }
  std::string take();

 private:
  void event(std::string_view type, std::string_view rest);
  void open_block(TextChannel channel);
  void close_block();

  const ReplyHead head_;
  const std::int32_t prompt_tokens_;
  std::optional<TextChannel> open_;  // the block that takes text
  int blocks_ = 0;                   // begun so far
  std::string pending_;
};

}  // namespace linnet::api
