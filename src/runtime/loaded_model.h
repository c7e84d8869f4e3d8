// A model that answers: its text side and its engine.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "engine/executor.h"
#include "linnet/engine.h"
#include "linnet/text_engine.h"
#include "text/chat_template.h"
#include "text/reasoning_splitter.h"
#include "text/tokenizer.h"

namespace linnet {

// What a model says in text.
struct ModelText {
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat_template;
  std::vector<TokenId> end_tokens;
  std::optional<ReasoningMarkers> reasoning;  // of its answers to conversations
};

// `params` with what `overrides` says.
SamplingParams overridden(SamplingParams params, const SamplingOverrides& overrides);

// Thread-safe: templates and tokenizers are immutable, the engine takes requests from any thread.
class LoadedModel final : public TextEngine {
 public:
  // Starts the engine's thread. `sampling`: what requests that say nothing get; its seed counts only if `options` names one.
  LoadedModel(ModelCard card, ModelText text, std::unique_ptr<Executor> executor, const LoadOptions& options,
              const SamplingParams& sampling);

  const ModelCard& model() const override { return card_; }
  Result<std::vector<TextStream>> submit_choices(TextRequest request) override;
  Result<RequestHandle> submit_tokens(Request request) override { return engine_.submit(std::move(request)); }
  Result<std::vector<TokenId>> tokenize(std::string_view text) const override;
  std::string detokenize(std::span<const TokenId> tokens) const override;
  Result<std::vector<TokenId>> prompt_tokens(const TextPrompt& prompt) const override;
  Result<std::string> render(const ChatPrompt& prompt) const override;
  void ask_cache(CacheQuestion question, CacheAnswer answer) override { engine_.ask_cache(question, std::move(answer)); }
  EngineStats stats() const override { return engine_.stats(); }
  std::vector<StepRecord> recent_steps() const override { return engine_.recent_steps(); }
  std::optional<RequestTrace> trace(std::string_view id) const override { return engine_.trace(id); }
  void stop() override { engine_.stop(); }

 private:
  Result<std::vector<TokenId>> encode_rendered(const std::string& rendered) const;
  SamplingParams sampling_of(const SamplingOverrides& asked);

  ModelCard card_;
  ModelText text_;
  SamplingParams default_sampling_;
  std::optional<std::uint64_t> default_seed_;
  std::optional<std::int32_t> default_max_tokens_;
  SystemClock clock_;
  std::atomic<std::uint64_t> seeds_;  // of requests that name none: each has its own
  Engine engine_;
};

}  // namespace linnet
