// A text engine without a model: plays back a script. For tests of everything in front of the engine.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "linnet/text_engine.h"

namespace linnet {

// The script of one request, seen by the test's thread and the server's.
class ScriptedAnswer {
 public:
  ScriptedAnswer(TextRequest request, std::int32_t prompt_tokens) : request_(std::move(request)), prompt_tokens_(prompt_tokens) {}

  const TextRequest& request() const { return request_; }
  void push(TextEvent event);
  // False after ten seconds.
  bool wait_until_cancelled();
  bool cancelled() const;

 private:
  friend class ScriptedSource;
  void cancel();
  std::optional<TextEvent> take();
  void watch(std::function<void()> ready);

  const TextRequest request_;
  const std::int32_t prompt_tokens_;  // the script's
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TextEvent> events_;
  std::function<void()> ready_;
  bool cancelled_ = false;
};

// Thread-safe. Its tokens are bytes.
class ScriptedEngine final : public TextEngine {
 public:
  explicit ScriptedEngine(std::string id);

  // Every answer of every request gets these events at once; without final event it stays open for push().
  void script(std::vector<TextEvent> events);
  // Every request is refused with this.
  void refuse(std::optional<Error> error);
  // The answer submitted as the index-th, the choices of a request one after the other; waits for it. Null after ten seconds.
  std::shared_ptr<ScriptedAnswer> answer(std::size_t index);

  // Before the server starts.
  void set_cache(std::vector<CacheEntry> entries) { cache_ = std::move(entries); }
  ModelCard& card() { return card_; }

  const ModelCard& model() const override { return card_; }
  Result<std::vector<TextStream>> submit_choices(TextRequest request) override;
  Result<RequestHandle> submit_tokens(Request request) override;
  Result<std::vector<TokenId>> tokenize(std::string_view text) const override;
  std::string detokenize(std::span<const TokenId> tokens) const override;
  Result<std::vector<TokenId>> prompt_tokens(const TextPrompt& prompt) const override;
  Result<std::string> render(const ChatPrompt& prompt) const override;
  void ask_cache(CacheQuestion question, CacheAnswer answer) override;
  EngineStats stats() const override { return {}; }
  std::vector<StepRecord> recent_steps() const override { return {}; }
  std::optional<RequestTrace> trace(std::string_view /*id*/) const override { return {}; }
  void stop() override {}

 private:
  ModelCard card_;
  std::vector<CacheEntry> cache_;
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::vector<TextEvent> events_;
  std::optional<Error> refusal_;
  std::vector<std::shared_ptr<ScriptedAnswer>> answers_;
};

}  // namespace linnet
