// An admitted sequence: its tokens, its KV, its consumer, its way of choosing tokens.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/collected_sampler.h"
#include "engine/executor.h"
#include "engine/inbox.h"
#include "engine/lifecycle.h"
#include "engine/outbox.h"
#include "engine/row_grammar.h"
#include "linnet/event.h"
#include "linnet/sampling.h"
#include "sched/sequence.h"

namespace linnet {

// Where a sequence stands among those of its request.
enum class PromptRole {
  kComputes,  // computes the prompt, for itself and for those that wait
  kWaits,     // until the prompt's KV is there
  kDone,      // has the prompt's KV, or will have it before its next row
  kFollows,   // waits for a sequence of another request that computes the same beginning
};

// Whom a sequence follows, and how many first tokens they have in common.
struct Following {
  SequenceId sequence{};
  std::int32_t tokens = 0;
};

// Engine's thread only.
struct ActiveSequence {
  ActiveSequence(const Submission& submission, const Choice& choice, SequenceLifecycle with_blocks, std::int32_t vocabulary)
      : sequence(SequenceId{static_cast<std::uint64_t>(choice.outbox->id())}, submission.request.prompt, submission.limit),
        request(submission.open),
        lifecycle(std::move(with_blocks)),
        outbox(choice.outbox),
        params(submission.request.sampling),
        logit_bias(submission.request.logit_bias),
        xtc_exempt(submission.request.xtc_exempt),
        sampling(create_row_sampling(CollectedSampler(params), OutboxSink(*outbox))),
        deadline(submission.deadline),
        times{.choice = choice.index} {
    params.seed = choice_seed(params.seed, choice.index);
    if (!submission.request.ignore_eos) end_tokens = submission.request.end_tokens;
    if (submission.request.grammar) grammar.emplace(*submission.request.grammar, vocabulary);
    show_blocks();
  }

  // The lifecycle's blocks become the sequence's table.
  void show_blocks() { sequence.set_block_table(lifecycle.blocks()); }

  bool ends_with(TokenId token) const { return std::find(end_tokens.begin(), end_tokens.end(), token) != end_tokens.end(); }
  // Whether what its siblings wait for is computed: all of the prompt but its last token, which each of them feeds itself.
  bool has_prompt() const { return sequence.computed() >= sequence.prompt() - 1; }
  bool has_room() const { return outbox->has_room(undelivered + 1); }
  bool late(Clock::Duration now) const { return deadline && now >= *deadline; }
  bool before_min_tokens() const { return sequence.generated() < params.min_tokens; }
  Usage usage() const {
    return {.prompt_tokens = sequence.prompt(), .cached_tokens = sequence.cached(), .completion_tokens = sequence.generated()};
  }
  // Views stay valid until the next token is appended.
  RowSampling row_sampling() const {
    RowSampling row{.params = params,
                    .context = {.history = sequence.tokens(),
                                .logit_bias = logit_bias,
                                .end_tokens = end_tokens,
                                .xtc_exempt = xtc_exempt,
                                .mask = {}}};
    if (grammar) {
      row.params.min_tokens = 0;  // the mask knows
      row.context.mask = grammar->mask();
    }
    return row;
  }

  Sequence sequence;
  std::shared_ptr<OpenRequest> request;
  SequenceLifecycle lifecycle;
  std::shared_ptr<Outbox> outbox;
  SamplingParams params;
  std::vector<LogitBias> logit_bias;
  std::vector<TokenId> end_tokens;  // empty if they are to be ignored
  std::vector<TokenId> xtc_exempt;
  std::optional<RowGrammar> grammar;
  std::optional<Error> grammar_error;  // of preparing the mask for the step under way
  CollectedSampling sampling;
  std::optional<Clock::Duration> deadline;
  SequenceTimes times;
  Clock::Duration admitted{};
  PromptRole role = PromptRole::kComputes;
  Following following;          // while its role is kFollows
  std::size_t undelivered = 0;  // tokens that are not in the outbox yet
  bool ended = false;           // its FinishEvent is decided
  bool succeeded = false;       // and what it computed is good
};

}  // namespace linnet
