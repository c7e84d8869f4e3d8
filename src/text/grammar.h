// What an answer must look like, as a mask over the vocabulary at each step.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "linnet/ids.h"
#include "linnet/request.h"
#include "linnet/status.h"
#include "text/tokenizer.h"

namespace linnet {

// The state of one sequence within a grammar. Move-only; fork() for another sequence from the same point. One thread at a time.
class Grammar {
 public:
  // Errors: kInvalidArgument with the grammar compiler's reason (schema keyword, regex position, ...).
  static Result<Grammar> compile(const Tokenizer& tokenizer, GrammarKind kind, std::string_view source);

  Grammar(Grammar&&) noexcept;
  Grammar& operator=(Grammar&&) noexcept;
  ~Grammar();

  // Bit `id % 32` of word `id / 32` is set if the token may come next; `words` has at least (vocabulary_size + 31) / 32, those
  // beyond become 0. Errors: kUnsupported if the grammar passed its own limits.
  Status mask(std::span<std::uint32_t> words);
  // Errors: kInvalidArgument if the token may not come next; the state is then unchanged.
  Status consume(TokenId token);
  // Whether the answer may end here. Errors: as mask().
  Result<bool> accepting();
  // The answer must end here.
  bool finished() const;
  Grammar fork() const;

 private:
  class Impl;
  explicit Grammar(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet
