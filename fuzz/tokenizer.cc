#include "text/tokenizer.h"

#include <string_view>

#include "entry.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = linnet::Tokenizer::from_json(text);
  if (!tokenizer.ok()) return 0;
  const auto tokens = tokenizer->encode("A line of text, \xC3\xA9\xF0\x9F\x98\x80 and 12345.");
  if (tokens.ok()) (void)tokenizer->decode(*tokens);
  return 0;
}
