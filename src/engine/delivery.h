// What a step has for consumers: tokens, then endings, handed out when everything else of the step is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "engine/active_sequence.h"
#include "engine/active_set.h"
#include "engine/inbox.h"
#include "engine/outbox.h"
#include "engine/recorder.h"
#include "engine/waiting_list.h"
#include "linnet/event.h"

namespace linnet {

// Requests that ended, each once: when the last of its sequences did.
struct EndingCounts {
  std::uint64_t finished = 0;  // with any reason
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint64_t never_admitted = 0;  // of the finished
};

// Engine's thread only. Nothing allocates after the first steps, but for endings.
class Delivery {
 public:
  Delivery(ActiveSet& active, Inbox& inbox, Recorder& recorder, std::size_t tokens_max);

  // The next token of a sequence joins its history; it is shown unless it is an end token, and may end the sequence.
  void append(ActiveSequence& sequence, CollectedToken collected);
  // Decides on the final event of an admitted sequence, or of one that was not admitted.
  void end(ActiveSequence& sequence, FinishReason reason, std::optional<Error> error = std::nullopt);
  void end(Leaver& leaver, FinishReason reason, std::optional<Error> error = std::nullopt);
  // Lets go of ended sequences' KV; the sequences themselves stay until their tokens are out.
  void retire_ended(Executor& executor, Clock::Duration now) { active_.retire_ended(executor, now, gone_); }
  void emit();
  bool empty() const { return tokens_.empty() && endings_.empty(); }

  const EndingCounts& counts() const { return counts_; }

 private:
  struct TokenOut {
    ActiveSequence* sequence;  // alive in active_ or gone_
    TokenId token;
  };
  struct Ending {
    std::shared_ptr<Outbox> outbox;
    FinishEvent event;
  };
  void count(OpenRequest& request, FinishReason reason);

  ActiveSet& active_;
  Inbox& inbox_;
  Recorder& recorder_;
  std::vector<TokenOut> tokens_;
  std::vector<std::unique_ptr<ActiveSequence>> gone_;
  std::vector<Ending> endings_;
  EndingCounts counts_;
};

}  // namespace linnet
