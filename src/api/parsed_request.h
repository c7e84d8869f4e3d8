// What one OpenAI text request asks for, with the JSON left behind.
#pragma once

#include <string>
#include <vector>

#include "linnet/text_engine.h"

namespace linnet::api {

struct ParseOptions {
  bool strict = false;  // unknown fields are errors
};

struct ParsedRequest {
  TextRequest request;
  std::string model;  // as the client wrote it; empty if it did not
  bool stream = false;
  bool include_usage = false;        // a last chunk with usage
  std::vector<std::string> ignored;  // paths of unknown fields ("foo", "messages[].bar"), each once
};

}  // namespace linnet::api
