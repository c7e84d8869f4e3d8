// One streamed OpenAI answer as server-sent events.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "linnet/event.h"
#include "linnet/status.h"

namespace linnet::api {

// The texts between which a chunk's changing part stands; JSON, without the "data: " frame.
struct StreamFrames {
  std::string head;          // `{"id":...,"choices":[`, of every chunk
  std::string opening;       // choice of the first chunk; empty: there is none
  std::string delta_begin;   // choice of a delta, up to its text's opening quote
  std::string delta_end;     // and from its closing quote
  std::string finish_begin;  // choice of the last chunk, up to the finish reason's opening quote
  std::string finish_end;    // and from its closing quote
  bool include_usage = false;
};

// Collects events; take() hands out what came together since the last take(), to be written at once. Order of calls: begin, delta
// ..., then finish or fail. A delta costs no allocation once the buffer has grown; no JSON document is built.
class OpenAiStream {
 public:
  explicit OpenAiStream(StreamFrames frames);

  void begin();
  void delta(std::string_view text);       // valid UTF-8
  void finish(const FinishEvent& finish);  // without an error: last chunk, usage if asked for, [DONE]
  void fail(const Error& error);           // an error event; no [DONE] follows
  void keep_alive();                       // a comment, which clients skip

  bool empty() const { return pending_.empty(); }
  std::string take();

 private:
  void open_chunk();
  void close_chunk();

  StreamFrames frames_;
  std::string close_;  // what ends a chunk
  std::string pending_;
};

// "stop" or "length", as the OpenAI protocols call it. `reason` is neither kCancelled nor kError.
std::string_view finish_reason_name(FinishReason reason);

// {"prompt_tokens":..,"completion_tokens":..,"total_tokens":..,"prompt_tokens_details":{"cached_tokens":..}}
std::string encode_usage(const Usage& usage);

}  // namespace linnet::api
