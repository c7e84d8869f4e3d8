// One streamed OpenAI answer as server-sent events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/parsed_request.h"
#include "linnet/event.h"
#include "linnet/status.h"
#include "linnet/text_engine.h"

namespace linnet::api {

// Appends what stands after "logprobs": for one delta; `offset` counts the characters of the choice's tokens so far.
using AppendLogprobs = void (*)(std::string& out, std::span<const TextLogprobs> logprobs, std::size_t& offset);

// What a reply is to have.
struct ReplyOptions {
  std::int32_t choices = 1;
  bool logprobs = false;
  bool include_usage = false;  // a last chunk with usage, streamed
};
ReplyOptions reply_options_of(const ParsedRequest& parsed);

// The texts between which a chunk's changing part stands; JSON, without the "data: " frame. A choice is
// `{"index":N` + delta_begin + text + `","logprobs":` ... `,"finish_reason":null}`, with delta_end between text and logprobs.
struct StreamFrames {
  std::string head;          // `{"id":...,"choices":[`, of every chunk
  std::string opening;       // of each choice's first chunk, after its index; empty: there is none
  std::string delta_begin;   // of a delta, up to its text's opening quote
  std::string delta_end;     // from its closing quote to the value of logprobs
  std::string finish_begin;  // of the last chunk, up to the finish reason's opening quote
  AppendLogprobs append_logprobs = nullptr;
  ReplyOptions options;
};

// Collects events; take() hands out what came together since the last take(), to be written at once. Order of calls: begin,
// deltas and a finish for each choice, or fail. A delta without logprobs costs no allocation once the buffer has grown; no JSON
// document is built.
class OpenAiStream {
 public:
  explicit OpenAiStream(StreamFrames frames);

  void begin();
  void delta(std::int32_t choice, const TextDelta& delta);
  // Without an error: the choice's last chunk; after the last choice usage if asked for, and [DONE].
  void finish(std::int32_t choice, const FinishEvent& finish);
  void fail(const Error& error);  // an error event; no [DONE] follows

  bool empty() const { return pending_.empty(); }
  std::string take();

 private:
  void open_choice(std::int32_t choice);
  void close_choice();

  StreamFrames frames_;
  std::string close_;                 // what ends a chunk
  std::vector<std::size_t> offsets_;  // of the choices' logprobs
  std::int32_t unfinished_;           // choices
  Usage usage_;                       // of those that finished
  std::string pending_;
};

// "stop" or "length", as the OpenAI protocols call it. `reason` is neither kCancelled nor kError.
std::string_view finish_reason_name(FinishReason reason);

// {"prompt_tokens":..,"completion_tokens":..,"total_tokens":..,"prompt_tokens_details":{"cached_tokens":..}}, and where there was
// a reasoning part "completion_tokens_details":{"reasoning_tokens":..}.
std::string encode_usage(const Usage& usage);
// Of a reply: the prompt counts once, every answer counts.
Usage total_usage(std::span<const TextAnswer> answers);

}  // namespace linnet::api
