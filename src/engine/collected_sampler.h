// The engine's two ends of a sequence's sampling: what the executor collected for it comes in, its outbox takes what goes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/outbox.h"
#include "exec/row_sampling.h"
#include "linnet/event.h"
#include "linnet/ids.h"
#include "linnet/status.h"

namespace linnet {

// One sampled token, as StepResult holds it until the next launch.
struct CollectedToken {
  TokenId token{};
  const TokenLogprobs* logprobs = nullptr;  // null: not asked for
};

// A DeviceStepSampler whose tokens and captures were computed together, before Executor::collect() returned: nothing is left to
// wait for or to release.
class CollectedSampler {
 public:
  using Logits = CollectedToken;
  using Token = TokenId;
  using Extras = TokenLogprobs;

  explicit CollectedSampler(const SamplingParams& params) : captures_(params.logprobs.has_value()) {}
  bool captures_logprobs() const { return captures_; }
  bool plain_greedy() const { return false; }
  Result<StepExtras<Token, Extras>> sample(const CollectedToken& collected, std::uint64_t /*step*/) {
    StepExtras<Token, Extras> sampled{.token = collected.token, .extras = std::nullopt};
    if (collected.logprobs != nullptr) sampled.extras = *collected.logprobs;
    return sampled;
  }
  Status evaluate(const StepExtras<Token, Extras>& /*sampled*/) { return {}; }
  Result<TokenLogprobs> read(const Extras& extras) { return extras; }
  Status release_token(Token /*token*/) { return {}; }
  Status release_extras(const Extras& /*extras*/) { return {}; }
  Status dispose() { return {}; }

 private:
  bool captures_;
};

// A TokenSink. The outbox has room: a row whose outbox is full takes no part in steps.
class OutboxSink {
 public:
  explicit OutboxSink(Outbox& outbox) : outbox_(&outbox) {}
  SinkAnswer operator()(TokenId token, const TokenLogprobs* logprobs) {
    outbox_->push(token, logprobs);
    return outbox_->withdrawn() ? SinkAnswer::kStop : SinkAnswer::kContinue;
  }

 private:
  Outbox* outbox_;
};

using CollectedSampling = SequenceSampling<CollectedSampler, OutboxSink>;

}  // namespace linnet
