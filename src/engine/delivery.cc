#include "engine/delivery.h"

#include <utility>

#include "base/check.h"

namespace linnet {

Delivery::Delivery(ActiveSet& active, Inbox& inbox, Recorder& recorder, std::size_t tokens_max)
    : active_(active), inbox_(inbox), recorder_(recorder) {
  tokens_.reserve(tokens_max);
  gone_.reserve(active.capacity());
}

void Delivery::append(ActiveSequence& sequence, CollectedToken collected) {
  const TokenId token = collected.token;
  const auto at = static_cast<std::uint64_t>(sequence.sequence.generated());
  CHECK(sequence.sampling.sample(collected, at).ok());
  sequence.sequence.append(token);
  if (sequence.ends_with(token)) return end(sequence, FinishReason::kStop);
  tokens_.push_back({.sequence = &sequence, .token = token});
  ++sequence.undelivered;
  if (sequence.grammar) {
    const Status fits = sequence.grammar->advance(token);
    if (!fits.ok()) return end(sequence, FinishReason::kError, fits.error());
    if (sequence.grammar->finished()) return end(sequence, FinishReason::kStop);
  }
  if (sequence.sequence.at_limit()) return end(sequence, FinishReason::kLength);
}

void Delivery::emit() {
  // A sink's kStop is a withdrawal, which the next admit() sees before any further work.
  for (const TokenOut& out : tokens_) {
    CHECK(out.sequence->sampling.on_token(out.token).ok());
    --out.sequence->undelivered;
  }
  tokens_.clear();
  for (const auto& sequence : gone_) CHECK(sequence->sampling.dispose().ok());
  gone_.clear();
  for (Ending& ending : endings_) ending.outbox->finish(std::move(ending.event));
  endings_.clear();
}

void Delivery::count(OpenRequest& request, FinishReason reason) {
  request.cancelled = request.cancelled || reason == FinishReason::kCancelled;
  request.failed = request.failed || reason == FinishReason::kError;
  if (--request.open > 0) return;
  ++counts_.finished;
  if (request.failed) {
    ++counts_.failed;
  } else if (request.cancelled) {
    ++counts_.cancelled;
  }
}

void Delivery::end(ActiveSequence& sequence, FinishReason reason, std::optional<Error> error) {
  CHECK(!sequence.ended);
  sequence.ended = true;
  sequence.succeeded = reason == FinishReason::kStop || reason == FinishReason::kLength;
  active_.let_go(sequence);
  count(*sequence.request, reason);
  recorder_.ended(sequence.request->times, {.choice = sequence.times.choice, .generated = sequence.sequence.generated()}, reason);
  endings_.push_back(
      {.outbox = sequence.outbox, .event = {.reason = reason, .usage = sequence.usage(), .error = std::move(error)}});
}

void Delivery::end(Leaver& leaver, FinishReason reason, std::optional<Error> error) {
  count(*leaver.open, reason);
  recorder_.ended(leaver.open->times, {}, reason);
  if (leaver.open->open == 0) {
    ++counts_.never_admitted;
    inbox_.left(1);
  }
  const Usage usage{.prompt_tokens = leaver.prompt_tokens};
  endings_.push_back(
      {.outbox = std::move(leaver.outbox), .event = {.reason = reason, .usage = usage, .error = std::move(error)}});
}

}  // namespace linnet
