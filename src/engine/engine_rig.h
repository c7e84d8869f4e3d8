// For tests: an engine on a fake executor and virtual time, and what each request must answer, computed without them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "engine/admission.h"
#include "engine/fake_executor.h"
#include "engine/inbox.h"
#include "linnet/engine.h"

namespace linnet {

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<TokenLogprobs> logprobs;  // of tokens, if the request asks for them
  std::optional<FinishEvent> finish;

  bool operator==(const Answer&) const = default;
};

// The pure function's own answer: what a request must get, whoever else is being served.
// `choice`: which of its sequences; those after the first find the prompt computed.
inline Answer lone_answer(Request request, const ExecutorInfo& info, std::int32_t choice = 0) {
  const auto prompt = static_cast<std::int32_t>(request.prompt.size());
  const std::int32_t context = std::min(info.context_max, info.block_count * info.block_tokens);
  const std::int32_t limit = admissible_limit(request, {.vocabulary = info.vocabulary,
                                                        .context_max = context,
                                                        .block_tokens = info.block_tokens,
                                                        .block_count = info.block_count,
                                                        .choices_max = request.choices})
                                 .value();
  const std::int32_t max_tokens = limit - prompt;
  request.sampling.seed = choice_seed(request.sampling.seed, choice);
  Answer answer{.finish = FinishEvent{.reason = FinishReason::kLength, .usage = {.prompt_tokens = prompt}}};
  if (choice > 0 && max_tokens > 0) answer.finish->usage.cached_tokens = prompt - 1;
  std::vector<TokenId> history = request.prompt;
  for (std::int32_t index = 0; index < max_tokens; ++index) {
    const TokenId token = fake_next_token(history, request.sampling, static_cast<std::uint64_t>(index), info.vocabulary);
    history.push_back(token);
    ++answer.finish->usage.completion_tokens;
    const auto& ends = request.end_tokens;
    if (!request.ignore_eos && std::find(ends.begin(), ends.end(), token) != ends.end()) {
      answer.finish->reason = FinishReason::kStop;
      break;
    }
    answer.tokens.push_back(token);
    if (request.sampling.logprobs) {
      answer.logprobs.push_back(
          fake_logprobs(token, static_cast<std::uint64_t>(index), *request.sampling.logprobs, info.vocabulary));
    }
  }
  return answer;
}

// Adds what is there to `answer`.
inline void read_available(RequestHandle& handle, Answer& answer) {
  while (!answer.finish) {
    std::optional<Event> event = handle.try_next();
    if (!event) return;
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      answer.tokens.push_back(token->token);
      if (token->logprobs) answer.logprobs.push_back(*token->logprobs);
    } else {
      answer.finish = std::get<FinishEvent>(std::move(*event));
    }
  }
}

constexpr std::uint64_t kWholeCache = ~std::uint64_t{0};  // as prompt_cache_bytes

// Without a prompt cache, if the options don't say that there is one: then every request computes all that it needs.
class EngineRig {
 public:
  explicit EngineRig(EngineOptions options = {}, FakeExecutorOptions fake = {}) {
    options.prompt_cache_bytes = options.prompt_cache_bytes.value_or(0);
    fake.clock = &clock_;
    auto made = std::make_unique<FakeExecutor>(std::move(fake));
    executor_ = made.get();
    engine_ = std::make_unique<Engine>(options, std::move(made), clock_);
  }

  Engine& engine() { return *engine_; }
  FakeExecutor& executor() { return *executor_; }
  VirtualClock& clock() { return clock_; }
  const ExecutorInfo& info() const { return executor_->info(); }

  RequestHandle submit(Request request) { return engine_->submit(std::move(request)).value(); }
  std::vector<RequestHandle> submit_choices(Request request) { return engine_->submit_choices(std::move(request)).value(); }
  // Steps until there is nothing to run; the number of steps.
  int run() {
    int steps = 0;
    while (engine_->step()) ++steps;
    return steps;
  }
  Answer read_all(RequestHandle& handle) {
    Answer answer;
    do {
      read_available(handle, answer);
    } while (!answer.finish && engine_->step());
    read_available(handle, answer);
    return answer;
  }

 private:
  VirtualClock clock_;
  FakeExecutor* executor_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

inline std::vector<TokenId> prompt_of(std::int32_t count, std::int32_t first = 1) {
  std::vector<TokenId> prompt;
  for (std::int32_t index = 0; index < count; ++index) prompt.push_back(TokenId{(first + index * 7) % 1000});
  return prompt;
}

}  // namespace linnet
