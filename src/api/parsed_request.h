// What one text request asks for, with the JSON left behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linnet/text_engine.h"

namespace linnet::api {

struct ParseOptions {
  bool strict = false;  // unknown fields are errors
};

// How much the model is to think before it answers; what is absent is the model's own choice.
struct ReasoningWish {
  std::optional<bool> enabled;
  std::string effort;                      // "low", ...; empty: not named
  std::optional<std::int32_t> max_tokens;  // of the reasoning part
  std::string param;                       // the field that says so

  bool operator==(const ReasoningWish&) const = default;
};

struct ParsedRequest {
  TextRequest request;
  std::string model;  // as the client wrote it; empty if it did not
  bool stream = false;
  bool include_usage = false;  // a last chunk with usage
  ReasoningWish reasoning;
  std::vector<std::string> ignored;  // paths of unknown fields ("foo", "messages[].bar"), each once
};

}  // namespace linnet::api
