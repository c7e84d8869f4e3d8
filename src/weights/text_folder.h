// The text side of a Hugging Face model folder: its tokenizer and chat template, as the files say them.
#pragma once

#include <cstddef>
#include <string>

#include "linnet/status.h"

namespace linnet {

struct TextFolder {
  std::string tokenizer_json;         // tokenizer.json
  std::string tokenizer_config_json;  // tokenizer_config.json; empty if there is none
  std::string chat_template;  // chat_template.jinja, else "chat_template" of tokenizer_config.json; empty if there is none

  static constexpr std::size_t kFileBytesMax = std::size_t{64} << 20;
};

// Errors: kNotFound (no folder, no tokenizer.json), kIo, kTooLarge (a file above kFileBytesMax), kCorrupt (tokenizer_config.json
// is no JSON object, or its chat_template is of a kind that is not known); each names the file.
Result<TextFolder> read_text_folder(const std::string& folder);
// Only the template, and no error if there is no tokenizer.
Result<std::string> read_chat_template(const std::string& folder);

}  // namespace linnet
