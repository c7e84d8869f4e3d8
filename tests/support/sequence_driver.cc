#include "sequence_driver.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "base/check.h"

namespace linnet {

void SequenceDriver::assign_blocks(std::vector<DrivenSequence>& sequences, std::uint64_t shuffle_seed) const {
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(executor_->info().block_count));
  std::iota(ids.begin(), ids.end(), 0U);
  std::mt19937_64 random(shuffle_seed);
  std::shuffle(ids.begin(), ids.end(), random);
  const std::int32_t block_tokens = executor_->info().block_tokens;
  std::size_t next = 0;
  for (DrivenSequence& sequence : sequences) {
    sequence.blocks.clear();
    const auto total = static_cast<std::int32_t>(sequence.prompt_count) + sequence.generate;
    for (std::int32_t i = 0; i * block_tokens < total; ++i) sequence.blocks.push_back(static_cast<BlockId>(ids.at(next++)));
  }
}

void SequenceDriver::plan_row(DrivenSequence& sequence, std::size_t index, std::int32_t count, std::int32_t samples) {
  const std::int32_t block_tokens = executor_->info().block_tokens;
  const std::int32_t blocks = (sequence.computed + count + block_tokens - 1) / block_tokens;
  plan_.rows.push_back({.sequence = static_cast<SequenceId>(index),
                        .position = sequence.computed,
                        .samples = samples,
                        .sample_step = static_cast<std::uint64_t>(sequence.generated()),
                        .input_begin = static_cast<std::int32_t>(plan_.tokens.size()),
                        .input_count = count,
                        .block_begin = static_cast<std::int32_t>(plan_.blocks.size()),
                        .block_count = blocks});
  plan_.tokens.insert(plan_.tokens.end(), sequence.tokens.begin() + sequence.computed,
                      sequence.tokens.begin() + sequence.computed + count);
  plan_.blocks.insert(plan_.blocks.end(), sequence.blocks.begin(), sequence.blocks.begin() + blocks);
  sampling_.push_back({.params = {.temperature = 0}});
}

void SequenceDriver::step(std::vector<DrivenSequence>& sequences) {
  plan_.clear();
  sampling_.clear();
  std::int32_t room = executor_->info().step_tokens_max - static_cast<std::int32_t>(sequences.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    DrivenSequence& sequence = sequences[i];
    if (sequence.done()) continue;
    const std::int32_t missing = static_cast<std::int32_t>(sequence.tokens.size()) - sequence.computed;
    const std::int32_t count = std::min({missing, sequence.chunk == 0 ? missing : sequence.chunk, room});
    if (count <= 0) continue;
    room -= count;
    plan_row(sequence, i, count, count == missing ? 1 : 0);
  }
  const Ticket ticket = executor_->launch(plan_);
  executor_->sample(ticket, sampling_);
  const Result<const StepResult*> result = executor_->collect(ticket);
  CHECK(result.ok());
  std::size_t at = 0;
  const auto vocabulary = static_cast<std::size_t>(executor_->info().vocabulary);
  for (std::size_t r = 0; r < plan_.rows.size(); ++r) {
    DrivenSequence& sequence = sequences[static_cast<std::size_t>(plan_.rows[r].sequence)];
    sequence.computed += plan_.rows[r].input_count;
    if (plan_.rows[r].samples == 0) continue;
    CHECK(!(*result)->rows[r].failed);
    const std::span<const float> logits = logits_().subspan(at++ * vocabulary, vocabulary);
    sequence.logits.emplace_back(logits.begin(), logits.end());
    sequence.tokens.push_back((*result)->of((*result)->rows[r])[0]);
  }
}

void SequenceDriver::run(std::vector<DrivenSequence>& sequences, std::uint64_t shuffle_seed) {
  assign_blocks(sequences, shuffle_seed);
  while (!std::all_of(sequences.begin(), sequences.end(), [](const DrivenSequence& s) { return s.done(); })) step(sequences);
}

std::vector<std::vector<float>> SequenceDriver::feed(DrivenSequence& sequence, std::span<const TokenId> tokens,
                                                     std::int32_t samples) {
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  plan_.clear();
  sampling_.clear();
  plan_row(sequence, 0, static_cast<std::int32_t>(tokens.size()), samples);
  const Ticket ticket = executor_->launch(plan_);
  executor_->sample(ticket, sampling_);
  CHECK(executor_->collect(ticket).ok());
  sequence.computed += static_cast<std::int32_t>(tokens.size());
  const auto vocabulary = static_cast<std::size_t>(executor_->info().vocabulary);
  std::vector<std::vector<float>> rows;
  for (std::size_t i = 0; i < static_cast<std::size_t>(samples); ++i) {
    const std::span<const float> logits = logits_().subspan(i * vocabulary, vocabulary);
    rows.emplace_back(logits.begin(), logits.end());
  }
  return rows;
}

}  // namespace linnet
