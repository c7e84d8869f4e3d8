// A request in tokens, as the engine takes it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "linnet/ids.h"
#include "linnet/sampling.h"

namespace linnet {

class Grammar;  // src/text/grammar.h

enum class GrammarKind : std::uint8_t { kJsonSchema, kRegex, kLark };

// What an answer must look like.
struct GrammarSource {
  GrammarKind kind = GrammarKind::kJsonSchema;
  std::string text;

  bool operator==(const GrammarSource&) const = default;
};

struct Request {
  std::vector<TokenId> prompt;  // at least one token, each within the vocabulary
  SamplingParams sampling;
  std::optional<std::int32_t> max_tokens;  // tokens to generate at most, >= 0; absent: up to the context's end
  std::vector<TokenId> end_tokens;         // generating one of these ends the answer (it is counted, not emitted)
  bool ignore_eos = false;                 // end_tokens do not end the answer
  std::int32_t priority = 0;               // higher is admitted first
  std::int32_t choices = 1;                // sequences over this prompt; Engine::submit_choices
  std::vector<LogitBias> logit_bias;       // each token at most once
  std::vector<TokenId> xtc_exempt;         // tokens that XTC never drops, beside end_tokens
  // Compiled, at its beginning; each sequence goes its own way from there. Null: free text.
  std::shared_ptr<const Grammar> grammar;
  std::optional<std::chrono::milliseconds> time_limit;  // from submission; then the answer ends with kDeadlineExceeded
  std::string trace_id{};                               // what Engine::trace() will know it by; empty: not traced
  bool prompt_cache = true;                             // may begin with KV of earlier requests, and leaves its own
  std::string cache_scope{};                            // only requests of the same scope share KV
  std::string session{};  // of a client that comes back: a hint that its KV is worth keeping; never changes an answer

  bool operator==(const Request&) const = default;
};

}  // namespace linnet
