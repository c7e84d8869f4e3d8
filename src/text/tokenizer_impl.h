// What a Tokenizer holds; seen by tokenizer.cc and grammar.cc only.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "text/rust_call.h"
#include "text/tokenizer.h"

namespace linnet {

class Tokenizer::Impl {
 public:
  Impl(rust::Box<rust_text::HfTokenizer> encoder, rust_text::TokenTable table)
      : encoder_(std::move(encoder)), table_(std::move(table)) {}

  const rust_text::HfTokenizer& encoder() const { return *encoder_; }
  const rust_text::TokenTable& table() const { return table_; }
  std::size_t size() const { return table_.special.size(); }
  bool contains(TokenId token) const {
    return index_of(token) < size();  // a negative id's index is above any size
  }

  static std::string_view slice(const rust::Vec<std::uint8_t>& bytes, const rust::Vec<std::uint64_t>& ends, std::size_t index) {
    const std::size_t begin = index == 0 ? 0 : ends[index - 1];
    return {reinterpret_cast<const char*>(bytes.data()) + begin, ends[index] - begin};
  }

  // The vocabulary as grammars need it; built by the first caller, then shared.
  Result<const rust_text::GrammarEnvironment*> grammar_environment() const;

 private:
  rust::Box<rust_text::HfTokenizer> encoder_;
  rust_text::TokenTable table_;
  mutable std::mutex grammar_mutex_;
  mutable std::optional<rust::Box<rust_text::GrammarEnvironment>> grammar_environment_;
};

}  // namespace linnet
