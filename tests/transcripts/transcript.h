// A transcript file: what the engine will say, and then requests and the exact replies to them.
//
//   # a comment
//   delta "Hel"                  the engine's script for every request: pieces of text (JSON strings) and how it ends:
//   reasoning "Hm"               a piece of the reasoning part
//   finish stop 4 1 2 "END"      reason, prompt, cached and completion tokens, perhaps the stop string
//   fail internal the message    or an error after the deltas
//   refuse queue_full a message  or no answer at all
//   strict                       the server refuses unknown fields
//   reasons                      the model has a reasoning part, which its template can switch off
//   <<<
//   POST /v1/completions HTTP/1.1\r
//   Content-Length: {length}\r   {length}: of the request's body
//   ...
//   >>>
//   HTTP/1.1 200 OK\r
//   ...
//
// "\r" before a line's end stands for that byte, "\xff" for any; a block's last line end is not part of it. Blocks alternate, all
// on one connection.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/status.h"
#include "linnet/text_engine.h"

namespace linnet {

struct Exchange {
  std::string request;
  std::string reply;
};

struct Transcript {
  std::string preamble;  // as in the file
  std::vector<TextEvent> script;
  std::optional<Error> refusal;
  bool strict = false;
  bool reasons = false;
  std::vector<Exchange> exchanges;  // bytes, escapes resolved

  bool operator==(const Transcript&) const = default;
};

// Errors: kInvalidArgument, with the line that cannot be meant.
Result<Transcript> parse_transcript(std::string_view text);

// The bytes as a block of a transcript shows them.
std::string to_block(std::string_view bytes);

}  // namespace linnet
