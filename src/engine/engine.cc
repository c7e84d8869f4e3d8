#include "linnet/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/doorbell.h"
#include "base/log.h"
#include "engine/active_set.h"
#include "engine/admission.h"
#include "engine/cache_desk.h"
#include "engine/delivery.h"
#include "engine/engine_errors.h"
#include "engine/engine_limits.h"
#include "engine/executor.h"
#include "engine/inbox.h"
#include "engine/outbox.h"
#include "engine/recorder.h"
#include "engine/waiting_list.h"
#include "sched/cost_budget.h"
#include "sched/planner.h"

namespace linnet {
// Threads: submit() and stats() from any; everything else from the one that calls step(), and from stop() once that one is done.
class Engine::Impl {
 public:
  Impl(const EngineOptions& options, std::unique_ptr<Executor> executor, Clock& clock);

  Result<std::vector<RequestHandle>> submit(Request request);
  CacheDesk& cache_desk() { return cache_desk_; }
  const Recorder& recorder() const { return recorder_; }
  bool step();
  void start();
  void stop();
  EngineStats stats() const;

 private:
  Result<std::vector<RequestHandle>> accept(Request request);
  void admit();
  void end_withdrawn(Clock::Duration now);
  void plan();
  Result<const StepResult*> run();
  void prepare_masks();
  void commit(const Result<const StepResult*>& result);
  void commit_failed_step(const Error& error);
  void commit_row(ActiveSequence& sequence, std::size_t index, const StepResult& step);
  void hand_out();
  void publish_stats();
  std::optional<Clock::Duration> until_next_deadline() const;

  const EngineOptions options_;
  const std::unique_ptr<Executor> executor_;
  Clock& clock_;
  const AdmissionLimits admission_limits_;
  const bool overlaps_;
  const std::int32_t rows_max_;
  const Planner planner_;

  std::atomic<std::uint64_t> next_id_ = 1;
  std::atomic<std::uint64_t> answered_at_submit_ = 0;  // requests for no tokens
  const std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();
  Inbox inbox_;

  CacheDesk cache_desk_{doorbell_};
  WaitingList waiting_;
  std::vector<Leaver> leavers_;  // scratch of end_withdrawn() and stop()
  Recorder recorder_;
  ActiveSet active_;
  CostCalibration calibration_;
  std::vector<ActiveSequence*> runnable_;
  std::vector<const Sequence*> runnable_sequences_;  // of runnable_
  Schedule schedule_;
  std::vector<RowSampling> sampling_;  // of the schedule's rows
  Delivery delivery_;
  std::uint64_t admitted_ = 0;  // requests
  EngineStats counts_;

  mutable std::mutex stats_mutex_;
  EngineStats published_;

  std::mutex lifetime_mutex_;  // start and stop
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

Engine::Impl::Impl(const EngineOptions& options, std::unique_ptr<Executor> executor, Clock& clock)
    : options_(options),
      executor_(std::move(executor)),
      clock_(clock),
      admission_limits_(admission_limits_of(options, executor_->info())),
      overlaps_(executor_->info().overlaps),
      rows_max_(rows_max_of(options, executor_->info())),
      planner_(planner_limits_of(options, executor_->info())),
      inbox_(options.max_waiting),
      active_(active_limits_of(options, executor_->info()), recorder_),
      delivery_(active_, inbox_, recorder_, static_cast<std::size_t>(executor_->info().step_tokens_max)) {
  CHECK(options_.max_waiting >= 1 && options_.max_gap_ms >= 1 && options_.outbox_events_max >= 1);
  const std::size_t admitted_max = active_.capacity();
  schedule_.plan.clones.reserve(admitted_max);
  schedule_.plan.copies.reserve(admitted_max);
  runnable_.reserve(admitted_max);
  runnable_sequences_.reserve(admitted_max);
  schedule_.shares.reserve(admitted_max);
  schedule_.plan.rows.reserve(static_cast<std::size_t>(rows_max_));
  schedule_.plan.tokens.reserve(static_cast<std::size_t>(executor_->info().step_tokens_max));
  schedule_.plan.blocks.reserve(static_cast<std::size_t>(executor_->info().block_count));
  sampling_.reserve(static_cast<std::size_t>(rows_max_));
  publish_stats();
}

Result<std::vector<RequestHandle>> Engine::Impl::submit(Request request) {
  Result<std::vector<RequestHandle>> handles = accept(std::move(request));
  if (!handles.ok()) recorder_.rejected(handles.error().code);
  return handles;
}

Result<std::vector<RequestHandle>> Engine::Impl::accept(Request request) {
  LINNET_ASSIGN(const std::int32_t limit, admissible_limit(request, admission_limits_));
  const auto prompt_tokens = static_cast<std::int32_t>(request.prompt.size());
  const bool nothing_to_do = limit == prompt_tokens && !inbox_.closed();
  const OutboxOptions outbox_options{.tokens_max = options_.outbox_events_max, .logprobs = request.sampling.logprobs.has_value()};
  Submission submission{.limit = limit, .open = std::make_shared<OpenRequest>()};
  submission.open->open = request.choices;
  if (request.time_limit) submission.deadline = clock_.now() + *request.time_limit;
  std::vector<RequestHandle> handles;
  std::uint64_t id = next_id_.fetch_add(static_cast<std::uint64_t>(request.choices), std::memory_order_relaxed);
  for (std::int32_t index = 0; index < request.choices; ++index) {
    auto outbox = std::make_shared<Outbox>(RequestId{id++}, outbox_options, doorbell_);
    if (nothing_to_do) outbox->finish({.reason = FinishReason::kLength, .usage = {.prompt_tokens = prompt_tokens}, .error = {}});
    handles.emplace_back(outbox);
    submission.choices.push_back({.index = index, .outbox = std::move(outbox)});
  }
  if (nothing_to_do) {
    answered_at_submit_.fetch_add(1, std::memory_order_relaxed);
    return handles;
  }
  submission.open->times = recorder_.arrived(std::move(request.trace_id), clock_.now());
  submission.request = std::move(request);
  if (const Status pushed = inbox_.push(std::move(submission)); !pushed.ok()) return pushed.error();
  doorbell_->ring();
  return handles;
}

bool Engine::Impl::step() {
  recorder_.begin_step(clock_.now());
  admit();
  plan();
  const bool ran = !schedule_.plan.empty();
  if (ran) {
    recorder_.planned(schedule_.plan, clock_.now());
    const Result<const StepResult*> result = run();
    commit(result);
    recorder_.end_step(!result.ok(), clock_.now());
  }
  const bool late = overlaps_ && !delivery_.empty();  // what the next step hands out while it runs, if there is one
  if (!ran || !overlaps_) hand_out();
  return ran || late;
}

void Engine::Impl::hand_out() {
  publish_stats();
  delivery_.emit();
}

// Ends what was withdrawn or is late, and lets in what fits, in the waiting list's order.
void Engine::Impl::admit() {
  inbox_.drain(waiting_.arrivals());
  waiting_.accept_arrivals();
  const Clock::Duration now = clock_.now();
  cache_desk_.serve(active_.cache(), executor_->info().block_bytes, now);
  end_withdrawn(now);
  std::int32_t rows = active_.open_with_room();
  std::int32_t admitted = 0;
  while (!waiting_.empty()) {
    const auto more = static_cast<std::int32_t>(waiting_.next().choices.size());
    // More sequences than rows only of one request that has them to itself: nobody's pace suffers from later arrivals.
    if ((rows > 0 && rows + more > rows_max_) || !active_.admit(waiting_.next(), now)) break;
    waiting_.take_next();
    rows += more;
    ++admitted;
  }
  admitted_ += static_cast<std::uint64_t>(admitted);
  if (admitted > 0) inbox_.left(admitted);
  active_.begin_waiting(now);
}

void Engine::Impl::end_withdrawn(Clock::Duration now) {
  const auto reason_of = [](const Outbox& outbox) {
    return outbox.withdrawal() == Withdrawal::kSatisfied ? FinishReason::kStop : FinishReason::kCancelled;
  };
  waiting_.take_leavers(now, leavers_);
  for (Leaver& leaver : leavers_) {
    if (leaver.outbox->withdrawn()) {
      delivery_.end(leaver, reason_of(*leaver.outbox));
    } else {
      delivery_.end(leaver, FinishReason::kError, late_error(0));
    }
  }
  leavers_.clear();
  for (const auto& sequence : active_.all()) {
    if (sequence->ended) continue;
    if (sequence->outbox->withdrawn()) {
      delivery_.end(*sequence, reason_of(*sequence->outbox));
    } else if (sequence->late(now)) {
      delivery_.end(*sequence, FinishReason::kError, late_error(sequence->sequence.generated()));
    }
  }
  delivery_.retire_ended(*executor_, clock_.now());
}

void Engine::Impl::plan() {
  active_.gather_runnable(runnable_);
  runnable_sequences_.clear();
  for (const ActiveSequence* sequence : runnable_) runnable_sequences_.push_back(&sequence->sequence);
  planner_.plan(runnable_sequences_, calibration_.ratio(), schedule_);
  active_.beginnings().add_to(schedule_.plan);
}

Result<const StepResult*> Engine::Impl::run() {
  const Clock::Duration begin = clock_.now();
  const Ticket ticket = executor_->launch(schedule_.plan);
  if (overlaps_) hand_out();  // the last step's results
  active_.beginnings().launched();
  prepare_masks();  // while the forward pass runs
  sampling_.clear();
  for (const Share& share : schedule_.shares) sampling_.push_back(runnable_[share.index]->row_sampling());
  executor_->sample(ticket, sampling_);
  Result<const StepResult*> result = executor_->collect(ticket);  // the step's one synchronisation
  const Clock::Duration end = clock_.now();
  recorder_.ran(end);
  const std::chrono::duration<double, std::micro> took = end - begin;
  if (schedule_.plan.tokens.size() > schedule_.plan.rows.size()) calibration_.observe(schedule_.cost_us, took.count());
  return result;
}

// A grammar that fails ends its own row, at commit.
void Engine::Impl::prepare_masks() {
  for (std::size_t index = 0; index < schedule_.shares.size(); ++index) {
    ActiveSequence& sequence = *runnable_[schedule_.shares[index].index];
    if (!sequence.grammar || schedule_.plan.rows[index].samples == 0) continue;
    const bool early = sequence.before_min_tokens();
    const Status prepared =
        sequence.grammar->prepare(early ? std::span<const TokenId>(sequence.end_tokens) : std::span<const TokenId>());
    if (!prepared.ok()) sequence.grammar_error = prepared.error();
  }
}

// The only place where a step's result changes sequences.
void Engine::Impl::commit(const Result<const StepResult*>& result) {
  ++counts_.steps;
  if (!result.ok()) {
    commit_failed_step(result.error());
  } else {
    const StepResult& step = **result;
    CHECK(step.rows.size() == schedule_.shares.size());
    for (std::size_t index = 0; index < step.rows.size(); ++index) {
      commit_row(*runnable_[schedule_.shares[index].index], index, step);
    }
  }
  delivery_.retire_ended(*executor_, clock_.now());
}

void Engine::Impl::commit_failed_step(const Error& error) {
  log_error("a step of " + std::to_string(schedule_.shares.size()) + " rows failed: " + error.message);
  for (const Share& share : schedule_.shares) delivery_.end(*runnable_[share.index], FinishReason::kError, error);
  // Those that were to begin with a clone or a copy have nothing to begin with.
  for (const auto& sequence : active_.all()) {
    const bool begins = schedule_.plan.begins(sequence->sequence.id());
    if (begins && !sequence->ended) delivery_.end(*sequence, FinishReason::kError, error);
  }
}

void Engine::Impl::commit_row(ActiveSequence& sequence, std::size_t index, const StepResult& step) {
  const RowResult& row = step.rows[index];
  CHECK(row.failed || row.token_count == schedule_.plan.rows[index].samples);
  if (sequence.grammar_error) {
    log_warning("a grammar ended its request: " + sequence.grammar_error->message);
    return delivery_.end(sequence, FinishReason::kError, sequence.grammar_error);
  }
  if (row.failed) {
    const Error error = not_finite_error(sequence.sequence.generated());
    log_warning(error.message);
    return delivery_.end(sequence, FinishReason::kError, error);
  }
  RowDone done{.prefill = !sequence.sequence.decoding(), .inputs = schedule_.shares[index].inputs};
  if (done.prefill) counts_.prompt_tokens += static_cast<std::uint64_t>(done.inputs);
  sequence.sequence.advance(done.inputs, counts_.steps);
  const std::span<const TokenId> tokens = step.of(row);
  for (std::size_t sample = 0; sample < tokens.size() && !sequence.ended; ++sample) {
    CHECK(index_of(tokens[sample]) < static_cast<std::size_t>(admission_limits_.vocabulary));
    const auto capture = static_cast<std::size_t>(row.logprobs_begin) + sample;
    ++counts_.completion_tokens;
    ++done.tokens;
    delivery_.append(sequence,
                     {.token = tokens[sample], .logprobs = sequence.params.logprobs ? &step.logprobs[capture] : nullptr});
  }
  recorder_.row(sequence.request->times, sequence.times, done);
}

void Engine::Impl::publish_stats() {
  recorder_.copy_to(counts_);
  counts_.requests_finished = delivery_.counts().finished;
  counts_.requests_cancelled = delivery_.counts().cancelled;
  counts_.requests_failed = delivery_.counts().failed;
  counts_.requests_running =
      static_cast<std::int32_t>(admitted_ - (delivery_.counts().finished - delivery_.counts().never_admitted));
  counts_.kv_block_bytes = executor_->info().block_bytes;
  active_.copy_to(counts_);
  const std::lock_guard lock(stats_mutex_);
  published_ = counts_;
}

EngineStats Engine::Impl::stats() const {
  const std::lock_guard lock(stats_mutex_);
  EngineStats stats = published_;
  stats.requests_waiting = inbox_.waiting();
  recorder_.copy_rejected(stats);
  stats.requests_finished += answered_at_submit_.load(std::memory_order_relaxed);
  return stats;
}

void Engine::Impl::start() {
  const std::lock_guard lock(lifetime_mutex_);
  CHECK_MSG(!thread_.joinable(), "start() called twice");
  CHECK_MSG(!stopping_, "start() after stop()");
  thread_ = std::thread([this] {
    executor_->adopt_thread();
    while (!stopping_) {
      if (step()) continue;
      const std::optional<Clock::Duration> patience = until_next_deadline();
      if (patience) {
        doorbell_->wait_for(*patience);
      } else {
        doorbell_->wait();
      }
    }
  });
}

std::optional<Clock::Duration> Engine::Impl::until_next_deadline() const {
  Clock::Duration next = waiting_.next_deadline();
  for (const auto& sequence : active_.all()) next = std::min(next, sequence->deadline.value_or(next));
  if (next == Clock::Duration::max()) return std::nullopt;
  return std::max(next - clock_.now(), Clock::Duration::zero());
}

void Engine::Impl::stop() {
  const std::lock_guard lock(lifetime_mutex_);
  inbox_.close();
  stopping_ = true;
  doorbell_->ring();
  if (thread_.joinable()) thread_.join();
  cache_desk_.close();
  inbox_.drain(waiting_.arrivals());
  waiting_.accept_arrivals();
  waiting_.take_all(leavers_);
  for (Leaver& leaver : leavers_) delivery_.end(leaver, FinishReason::kError, stopping_error());
  leavers_.clear();
  for (const auto& sequence : active_.all()) {
    if (!sequence->ended) delivery_.end(*sequence, FinishReason::kError, stopping_error());
  }
  delivery_.retire_ended(*executor_, clock_.now());
  publish_stats();
  delivery_.emit();
}

Engine::Engine(const EngineOptions& options, std::unique_ptr<Executor> executor, Clock& clock)
    : impl_(std::make_unique<Impl>(options, std::move(executor), clock)) {}

Engine::~Engine() { stop(); }

Result<RequestHandle> Engine::submit(Request request) {
  if (request.choices != 1) {
    return Error{ErrorCode::kInvalidArgument, "submit() is for one sequence; submit_choices() gives a handle for each", "n"};
  }
  LINNET_ASSIGN(std::vector<RequestHandle> handles, impl_->submit(std::move(request)));
  return std::move(handles.front());
}
Result<std::vector<RequestHandle>> Engine::submit_choices(Request request) { return impl_->submit(std::move(request)); }
void Engine::ask_cache(CacheQuestion question, CacheAnswer answer) { impl_->cache_desk().ask(question, std::move(answer)); }
bool Engine::step() { return impl_->step(); }
void Engine::start() { impl_->start(); }
void Engine::stop() { impl_->stop(); }
EngineStats Engine::stats() const { return impl_->stats(); }
std::vector<StepRecord> Engine::recent_steps() const { return impl_->recorder().steps(); }
std::optional<RequestTrace> Engine::trace(std::string_view id) const { return impl_->recorder().trace(id); }

}  // namespace linnet
