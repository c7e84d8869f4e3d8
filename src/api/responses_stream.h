// Answers of /v1/responses, whole and as events. Pure; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/reply_head.h"
#include "linnet/text_engine.h"

namespace linnet::api {

// A response that has come to its end, and its output items alone.
struct EncodedResponse {
  std::string response;
  std::string output;
};

// `echo`: ResponsesFields::echo. `answer.finish` has no error.
EncodedResponse encode_response(const ReplyHead& head, std::string_view echo, const TextAnswer& answer);

// One streamed response. Order of calls: begin, then delta, then finish or fail. Items and events are numbered from 0; each item
// is done before the next is added; an answer without any text has one empty message.
class ResponsesStream {
 public:
  ResponsesStream(const ReplyHead& head, std::string_view echo) : head_(head), echo_(echo) {}

  void begin();
  void delta(const TextDelta& delta);
  void finish(const FinishEvent& finish);  // without an error
  void fail(const Error& error);

  // After finish().
  const EncodedResponse& response() const { return response_; }
  bool empty() const { return pending_.empty(); }
  std::string take();

 private:
  void event(std::string_view type, const std::string& rest);
  void begin_event(std::string_view type);
  void open_item(TextChannel channel);
  void close_item(bool complete);
  std::string place() const;  // `,"item_id":...,"output_index":...,"content_index":0`

  const ReplyHead head_;
  const std::string echo_;
  TextAnswer answer_;
  EncodedResponse response_;
  std::optional<TextChannel> open_;  // the item that takes text
  int items_ = 0;                    // added so far
  int events_ = 0;
  std::string pending_;
};

}  // namespace linnet::api
