// One sequence's sampling as its group sees it: tokens come in, tokens and what belongs to them go out. How logprobs are
// captured, kept and paired with emitted tokens is the sequence's own affair (docs/contracts.md, clauses P01-P12).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "linnet/event.h"
#include "linnet/ids.h"
#include "linnet/status.h"

namespace linnet {

// What a sampler gives for one step. Token and extras may be handles of values that are not computed yet.
template <class Token, class Extras>
struct StepExtras {
  Token token{};
  std::optional<Extras> extras;
};

// Where a sequence's samples come from: logits and request-local step to a token and its extras. `evaluate` starts the
// computation of both in one call; `read` waits for extras and releases them, also if it fails.
template <class S>
concept DeviceStepSampler = requires(S sampler, typename S::Logits logits, std::uint64_t step,
                                     StepExtras<typename S::Token, typename S::Extras> sampled) {
  { sampler.captures_logprobs() } -> std::same_as<bool>;
  { sampler.plain_greedy() } -> std::same_as<bool>;
  { sampler.sample(logits, step) } -> std::same_as<Result<StepExtras<typename S::Token, typename S::Extras>>>;
  { sampler.evaluate(sampled) } -> std::same_as<Status>;
  { sampler.read(std::move(*sampled.extras)) } -> std::same_as<Result<TokenLogprobs>>;
  { sampler.release_token(std::move(sampled.token)) } -> std::same_as<Status>;
  { sampler.release_extras(std::move(*sampled.extras)) } -> std::same_as<Status>;
  { sampler.dispose() } -> std::same_as<Status>;
};

enum class SinkAnswer { kContinue, kStop };

// Where a sequence's emitted tokens go. Null: no logprobs. Without room it is not called: its row is left out of the steps.
template <class K>
concept TokenSink = requires(K sink, TokenId token, const TokenLogprobs* logprobs) {
  { sink(token, logprobs) } -> std::same_as<SinkAnswer>;
};

// Move-only in spirit: one owner, one thread. Steps count from 0 without gaps and are emitted in that order; steps may be sampled
// ahead of emission, `ahead_max` of them at most. Nothing allocates after construction.
template <DeviceStepSampler S, TokenSink K>
class SequenceSampling {
 public:
  using Token = typename S::Token;
  using Extras = typename S::Extras;

  SequenceSampling(S sampler, K sink, std::size_t ahead_max)
      : sampler_(std::move(sampler)), sink_(std::move(sink)), captures_(sampler_.captures_logprobs()) {
    if (captures_) pending_.reserve(ahead_max);
  }

  // A group may choose such rows' tokens by one argmax over all of them; a capture would be skipped by that.
  bool plain_greedy() const { return !captures_ && sampler_.plain_greedy(); }

  // Errors: the sampler's own, untouched; or that of evaluating what it gave, which is then released.
  Result<Token> sample(typename S::Logits logits, std::uint64_t step) {
    auto made = sampler_.sample(logits, step);
    if (!made.ok()) return made.error();
    StepExtras<Token, Extras> sampled = std::move(made).value();
    if (!captures_) return std::move(sampled.token);
    if (const Status started = sampler_.evaluate(sampled); !started.ok()) {
      Failures failures(started.error());
      failures.add(sampler_.release_token(std::move(sampled.token)));
      if (sampled.extras) failures.add(sampler_.release_extras(std::move(*sampled.extras)));
      return *failures.error();
    }
    if (sampled.extras) LINNET_RETURN_IF_ERROR(keep(step, std::move(*sampled.extras)));
    return std::move(sampled.token);
  }

  // The next token in the order of steps was emitted. `handed`: what the group itself has to say; only without capture does it
  // reach the sink. Errors: of reading the capture; it is released and the counter advanced all the same.
  Result<SinkAnswer> on_token(TokenId token, const TokenLogprobs* handed = nullptr) {
    if (!captures_) return sink_(token, handed);
    std::optional<Extras> extras = take(emitted_++);
    if (!extras) return sink_(token, nullptr);
    LINNET_ASSIGN(const TokenLogprobs logprobs, sampler_.read(std::move(*extras)));
    return sink_(token, &logprobs);
  }

  // Releases the sampler and every capture that was not emitted, once; all are tried and all failures reported.
  Status dispose() {
    if (std::exchange(disposed_, true)) return {};
    std::vector<Capture> rest = std::move(pending_);
    pending_.clear();
    Failures failures;
    failures.add(sampler_.dispose());
    for (Capture& capture : rest) failures.add(sampler_.release_extras(std::move(capture.extras)));
    if (!failures.error()) return {};
    return *failures.error();
  }

 private:
  struct Capture {
    std::uint64_t step = 0;
    Extras extras{};
  };

  // One error of several, in order.
  class Failures {
   public:
    Failures() = default;
    explicit Failures(Error first) : error_(std::move(first)) {}
    void add(const Status& status) {
      if (status.ok()) return;
      if (!error_) {
        error_ = status.error();
      } else {
        error_->message += "; and releasing it failed: " + status.error().message;
      }
    }
    const std::optional<Error>& error() const { return error_; }

   private:
    std::optional<Error> error_;
  };

  Status keep(std::uint64_t step, Extras extras) {
    for (Capture& capture : pending_) {
      if (capture.step == step) return sampler_.release_extras(std::exchange(capture.extras, std::move(extras)));
    }
    CHECK_MSG(pending_.size() < pending_.capacity(), "more steps are sampled ahead than were announced");
    pending_.push_back({.step = step, .extras = std::move(extras)});
    return {};
  }

  std::optional<Extras> take(std::uint64_t step) {
    for (std::size_t index = 0; index < pending_.size(); ++index) {
      if (pending_[index].step != step) continue;
      std::optional<Extras> extras = std::move(pending_[index].extras);
      std::swap(pending_[index], pending_.back());
      pending_.pop_back();
      return extras;
    }
    return std::nullopt;
  }

  S sampler_;
  K sink_;
  bool captures_;
  bool disposed_ = false;
  std::uint64_t emitted_ = 0;
  std::vector<Capture> pending_;  // in no order: there are few
};

template <DeviceStepSampler S, TokenSink K>
SequenceSampling<S, K> create_row_sampling(S sampler, K sink, std::size_t ahead_max = 1) {
  return SequenceSampling<S, K>(std::move(sampler), std::move(sink), ahead_max);
}

}  // namespace linnet
