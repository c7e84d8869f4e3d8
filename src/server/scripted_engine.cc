#include "server/scripted_engine.h"

#include <chrono>
#include <utility>

#include "base/check.h"

namespace linnet {
namespace {

constexpr std::chrono::seconds kPatience{10};

}  // namespace

// The consumer's end: the last thing the server lets go of.
class ScriptedSource final : public TextSource {
 public:
  explicit ScriptedSource(std::shared_ptr<ScriptedAnswer> answer) : answer_(std::move(answer)) {}
  ~ScriptedSource() override {
    answer_->watch({});
    if (!finished_) answer_->cancel();
  }
  std::optional<TextEvent> try_next() override {
    std::optional<TextEvent> event = answer_->take();
    if (event && std::holds_alternative<FinishEvent>(*event)) finished_ = true;
    return event;
  }
  TextEvent next() override { CHECK_MSG(false, "a server never blocks on its IO thread"); }
  void on_ready(std::function<void()> ready) override { answer_->watch(std::move(ready)); }
  void cancel() override { answer_->cancel(); }
  std::int32_t prompt_tokens() const override { return answer_->prompt_tokens_; }

 private:
  std::shared_ptr<ScriptedAnswer> answer_;
  bool finished_ = false;
};

void ScriptedAnswer::push(TextEvent event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  if (ready_) ready_();
}

void ScriptedAnswer::watch(std::function<void()> ready) {
  const std::lock_guard lock(mutex_);
  ready_ = std::move(ready);
  if (ready_ && !events_.empty()) ready_();
}

std::optional<TextEvent> ScriptedAnswer::take() {
  const std::lock_guard lock(mutex_);
  if (events_.empty()) return std::nullopt;
  TextEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void ScriptedAnswer::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

bool ScriptedAnswer::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

bool ScriptedAnswer::wait_until_cancelled() {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return cancelled_; });
}

ScriptedEngine::ScriptedEngine(std::string id) {
  card_.id = std::move(id);
  card_.created = 0;
  card_.context = 2048;
  card_.has_chat_template = true;
}

void ScriptedEngine::script(std::vector<TextEvent> events) {
  const std::lock_guard lock(mutex_);
  events_ = std::move(events);
}

void ScriptedEngine::refuse(std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  refusal_ = std::move(error);
}

std::shared_ptr<ScriptedAnswer> ScriptedEngine::answer(std::size_t index) {
  std::unique_lock lock(mutex_);
  const bool there = submitted_.wait_for(lock, kPatience, [&] { return answers_.size() > index; });
  return there ? answers_[index] : nullptr;
}

Result<std::vector<TextStream>> ScriptedEngine::submit_choices(TextRequest request) {
  const std::lock_guard lock(mutex_);
  if (refusal_) return *refusal_;
  const auto* finish = events_.empty() ? nullptr : std::get_if<FinishEvent>(&events_.back());
  const std::int32_t prompt_tokens = finish == nullptr ? 0 : finish->usage.prompt_tokens;
  std::vector<TextStream> streams;
  for (std::int32_t choice = 0; choice < request.choices; ++choice) {
    auto answer = std::make_shared<ScriptedAnswer>(request, prompt_tokens);
    for (const TextEvent& event : events_) answer->push(event);
    answers_.push_back(answer);
    streams.emplace_back(std::make_unique<ScriptedSource>(std::move(answer)));
  }
  submitted_.notify_all();
  return streams;
}

Result<RequestHandle> ScriptedEngine::submit_tokens(Request) {
  return Error{ErrorCode::kUnsupported, "a scripted engine answers in text alone", {}};
}

Result<std::vector<TokenId>> ScriptedEngine::tokenize(std::string_view text) const {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(static_cast<TokenId>(static_cast<unsigned char>(byte)));
  return tokens;
}

std::string ScriptedEngine::detokenize(std::span<const TokenId> tokens) const {
  std::string text;
  for (const TokenId token : tokens) text += static_cast<char>(token);
  return text;
}

Result<std::vector<TokenId>> ScriptedEngine::prompt_tokens(const TextPrompt& prompt) const {
  if (const auto* tokens = std::get_if<std::vector<TokenId>>(&prompt)) return *tokens;
  if (const auto* text = std::get_if<std::string>(&prompt)) return tokenize(*text);
  LINNET_ASSIGN(const std::string rendered, render(std::get<ChatPrompt>(prompt)));
  return tokenize(rendered);
}

Result<std::string> ScriptedEngine::render(const ChatPrompt& prompt) const { return prompt.messages_json; }

void ScriptedEngine::ask_cache(CacheQuestion question, CacheAnswer answer) {
  std::vector<CacheEntry> found;
  std::vector<CacheEntry> kept;
  {
    const std::lock_guard lock(mutex_);
    for (const CacheEntry& entry : cache_) (!question.id || *question.id == entry.id ? found : kept).push_back(entry);
    if (question.forget) cache_ = kept;
  }
  answer(std::move(found));
}

}  // namespace linnet
