// What one text request asks for, with the JSON left behind.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "linnet/text_engine.h"

namespace linnet::api {

// The conversation of a stored response: what the model read and what it answered, arrays of items.
struct StoredItems {
  std::string items;
  std::string output;
};

struct ParseOptions {
  bool strict = false;  // unknown fields are errors
  // Of the response that has this id. Errors: kNotFound, kIo. Empty: nothing is stored here.
  std::function<Result<StoredItems>(const std::string& id)> stored{};
};

// What only /v1/responses has.
struct ResponsesFields {
  std::string echo;   // the fields that the response repeats, `"instructions":...,`: JSON that ends with a comma
  std::string items;  // the conversation up to now, an array of items
  bool store = true;
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
  std::optional<ResponsesFields> responses;
  std::vector<std::string> ignored;  // paths of unknown fields ("foo", "messages[].bar"), each once
};

}  // namespace linnet::api
