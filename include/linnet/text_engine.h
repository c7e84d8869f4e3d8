// The engine in text: a loaded model with its tokenizer, chat template and engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "linnet/engine.h"
#include "linnet/ids.h"
#include "linnet/options.h"
#include "linnet/request.h"
#include "linnet/sampling.h"
#include "linnet/status.h"

namespace linnet {

// A conversation, rendered by the model's chat template. Values are JSON texts, checked by whoever made them.
struct ChatPrompt {
  std::string messages_json;       // array of {"role", "content", ...}
  std::string tools_json;          // array of tool objects; empty: none
  std::string template_args_json;  // object merged into the template's variables; empty: none
  bool add_generation_prompt = true;
  // The same conversation in shapes that stricter templates take; tried in order when the template refuses messages_json.
  std::vector<std::string> fallback_messages_json;
};

// Raw text, token ids, or a conversation.
using TextPrompt = std::variant<std::string, std::vector<TokenId>, ChatPrompt>;

struct TextRequest {
  TextPrompt prompt;
  SamplingOverrides sampling;
  std::optional<std::int32_t> max_tokens;
  std::vector<std::string> stop;  // generation ends before the first of these in the text; empty strings are ignored
  bool ignore_eos = false;        // end tokens do not end the answer
  std::int32_t priority = 0;
  bool split_reasoning = true;  // false: reasoning and its markers stay in the content
  std::int32_t choices = 1;     // answers to the same prompt; submit_choices()
  std::vector<LogitBias> logit_bias;
  std::optional<GrammarSource> grammar;                 // what the answer must look like
  std::optional<std::chrono::milliseconds> time_limit;  // from submission
  std::string trace_id{};                               // as Request's
};

// Which part of an answer a text belongs to.
enum class TextChannel { kContent, kReasoning };

// A token; special ones by their names.
struct TextLogprob {
  std::string text;   // valid UTF-8: U+FFFD for what is no whole character
  std::string bytes;  // exactly
  float logprob = 0;

  bool operator==(const TextLogprob&) const = default;
};

// A generated token and the most likely ones in its place.
struct TextLogprobs {
  TextLogprob token;
  std::vector<TextLogprob> top;

  bool operator==(const TextLogprobs&) const = default;
};

struct TextDelta {
  std::string text;  // valid UTF-8, not empty unless there are logprobs
  TextChannel channel = TextChannel::kContent;
  // If they were asked for: of the tokens whose text begins within this delta, and of those without text before them. Tokens
  // whose text begins within a stop string are left out.
  std::vector<TextLogprobs> logprobs{};

  bool operator==(const TextDelta&) const = default;
};

using TextEvent = std::variant<TextDelta, FinishEvent>;

// What stands behind a TextStream: a request on the engine, or a script in a test.
class TextSource {
 public:
  virtual ~TextSource() = default;  // before the final event: cancels
  virtual std::optional<TextEvent> try_next() = 0;
  virtual TextEvent next() = 0;
  virtual void on_ready(std::function<void()> ready) = 0;
  virtual void cancel() = 0;
  virtual std::int32_t prompt_tokens() const = 0;
};

// The consumer's end of one text request; threads and rules as RequestHandle. Deltas and their concatenation do not depend on how
// fast they are read.
class TextStream {
 public:
  explicit TextStream(std::unique_ptr<TextSource> source) : source_(std::move(source)) {}

  std::optional<TextEvent> try_next() { return source_->try_next(); }
  TextEvent next() { return source_->next(); }
  void on_ready(std::function<void()> ready) { source_->on_ready(std::move(ready)); }
  void cancel() { source_->cancel(); }
  std::int32_t prompt_tokens() const { return source_->prompt_tokens(); }

 private:
  std::unique_ptr<TextSource> source_;
};

// A whole answer.
struct TextAnswer {
  std::string content;
  std::string reasoning;                 // empty unless the model's answers have a reasoning part and split_reasoning is true
  FinishEvent finish;                    // without an error
  std::vector<TextLogprobs> logprobs{};  // of all tokens, if they were asked for

  bool operator==(const TextAnswer&) const = default;
};

// What a client may know about a model.
struct ModelCard {
  std::string id;            // what replies call it
  std::string architecture;  // "llama", ...
  std::int64_t created = 0;  // seconds since 1970, when it was loaded
  std::int32_t context = 0;  // tokens of prompt + answer
  std::int32_t vocabulary = 0;
  bool has_chat_template = false;
  bool reasons = false;           // its answers have a reasoning part, which is told from the content
  bool reasoning_switch = false;  // the template reads enable_thinking
  bool reasoning_effort = false;  // the template reads reasoning_effort
  std::string backend;            // "cpu", "mlx"
  std::string kernels;            // instruction set of the kernels, "amx", "avx512", "portable", ...
  std::int32_t threads = 0;       // kernel threads
  // What one token costs, for limits: weights read by a lone decode row, KV read for each token of context, and operations of
  // the layers' matrices (the head is computed for sampled tokens only).
  double weight_bytes_per_token = 0;
  double kv_bytes_per_token = 0;
  double flops_per_token = 0;
};

// Thread-safe after load(): any thread may call any method.
class TextEngine {
 public:
  // Reads the model, reserves KV and scratch, starts the engine's thread. Errors: kNotFound, kUnsupported (architecture, format),
  // kCorrupt (file, field, value), kTooLarge (memory budget).
  static Result<std::unique_ptr<TextEngine>> load(const LoadOptions& options);
  virtual ~TextEngine() = default;

  virtual const ModelCard& model() const = 0;
  // Renders, tokenizes and submits. Errors: those of Engine::submit; kInvalidArgument with the template's own words.
  Result<TextStream> submit(TextRequest request);  // one answer
  // TextRequest::choices of them; the first is what submit() would give. The prompt is computed once.
  virtual Result<std::vector<TextStream>> submit_choices(TextRequest request) = 0;
  // The same in tokens, as the engine itself takes and gives them: no template, no text, no defaults for sampling. Errors: those
  // of Engine::submit.
  virtual Result<RequestHandle> submit_tokens(Request request) = 0;
  // submit(), and waits for the whole answer: one request of an engine that may be serving others. Errors: those of submit(), and
  // what ended the answer early (kCancelled if somebody cancelled it, kUnavailable after stop()).
  Result<TextAnswer> run(TextRequest request);
  // Text to ids as a prompt would be, with the special tokens that the tokenizer adds by itself.
  virtual Result<std::vector<TokenId>> tokenize(std::string_view text) const = 0;
  virtual std::string detokenize(std::span<const TokenId> tokens) const = 0;
  // What submit() would give the engine to read.
  virtual Result<std::vector<TokenId>> prompt_tokens(const TextPrompt& prompt) const = 0;
  // The conversation as the model will see it.
  virtual Result<std::string> render(const ChatPrompt& prompt) const = 0;
  virtual void ask_cache(CacheQuestion question, CacheAnswer answer) = 0;  // as Engine's
  virtual EngineStats stats() const = 0;
  virtual std::vector<StepRecord> recent_steps() const = 0;                  // as Engine's
  virtual std::optional<RequestTrace> trace(std::string_view id) const = 0;  // as Engine's
  virtual void stop() = 0;
};

}  // namespace linnet
