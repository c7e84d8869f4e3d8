// An admitted request: its sequence, its KV, its consumer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "cache/block_pool.h"
#include "engine/inbox.h"
#include "engine/outbox.h"
#include "linnet/event.h"
#include "linnet/sampling.h"
#include "sched/sequence.h"

namespace linnet {

// Engine's thread only.
struct ActiveRequest {
  ActiveRequest(Submission submission, BlockRun run)
      : sequence(SequenceId{static_cast<std::uint64_t>(submission.outbox->id())}, std::move(submission.request.prompt),
                 submission.limit),
        blocks(std::move(run)),
        outbox(std::move(submission.outbox)),
        sampling(submission.request.sampling) {
    if (!submission.request.ignore_eos) end_tokens = std::move(submission.request.end_tokens);
    sequence.set_block_table({blocks.begin(), blocks.end()});
  }

  bool ends_with(TokenId token) const { return std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end(); }
  Usage usage() const {
    return {.prompt_tokens = sequence.prompt(), .cached_tokens = sequence.cached(), .completion_tokens = sequence.generated()};
  }

  Sequence sequence;
  BlockRun blocks;  // what the sequence's block table names
  std::shared_ptr<Outbox> outbox;
  SamplingParams sampling;
  std::vector<TokenId> end_tokens;  // empty if they are to be ignored
  bool ended = false;               // its FinishEvent is decided
};

}  // namespace linnet
