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
#include "cache/block_pool.h"
#include "engine/active_request.h"
#include "engine/admission.h"
#include "engine/executor.h"
#include "engine/inbox.h"
#include "engine/outbox.h"
#include "engine/waiting_list.h"
#include "sched/cost_budget.h"
#include "sched/planner.h"

namespace linnet {
namespace {

// Rows whose outbox is full take no part in steps, so more requests than rows may be admitted; at most this many times max_rows.
constexpr std::int32_t kAdmittedPerRow = 4;

std::int32_t rows_max_of(const EngineOptions& options, const ExecutorInfo& info) {
  return std::min({options.max_rows, info.step_rows_max, info.step_tokens_max});
}

AdmissionLimits admission_limits_of(const ExecutorInfo& info) {
  const auto pool_tokens = std::int64_t{info.block_tokens} * info.block_count;
  return {.vocabulary = info.vocabulary,
          .context_max = static_cast<std::int32_t>(std::min<std::int64_t>(info.context_max, pool_tokens))};
}

PlannerLimits planner_limits_of(const EngineOptions& options, const ExecutorInfo& info) {
  return {.rows_max = rows_max_of(options, info),
          .step_tokens_max = info.step_tokens_max,
          .block_tokens = info.block_tokens,
          .gap_us = options.max_gap_ms * 1000.0,
          .cost = {.fixed_us = info.step_cost_fixed_us,
                   .per_token_us = info.step_cost_per_token_us,
                   .per_token_context_us = info.step_cost_per_token_context_us}};
}

Error stopping_error() {
  return {ErrorCode::kUnavailable, "the engine stopped before the answer was complete; send the request again later", ""};
}

}  // namespace

// Threads: submit() and stats() from any; everything else from the one that calls step(), and from stop() once that one is done.
class Engine::Impl {
 public:
  Impl(const EngineOptions& options, std::unique_ptr<Executor> executor, Clock& clock);

  Result<RequestHandle> submit(Request request);
  bool step();
  void start();
  void stop();
  EngineStats stats() const;

 private:
  struct TokenOut {
    Outbox* outbox;  // kept alive by active_ or endings_
    TokenId token;
  };
  struct Ending {
    std::shared_ptr<Outbox> outbox;
    FinishEvent event;
  };

  void admit();
  void end_withdrawn();
  void plan();
  Result<const StepResult*> run();
  void commit(const Result<const StepResult*>& result);
  void commit_row(ActiveRequest& request, std::int32_t inputs, const RowResult& row, std::span<const TokenId> tokens);
  void emit();

  void end(ActiveRequest& request, FinishReason reason, std::optional<Error> error = std::nullopt);
  void end_waiting(Submission& submission, FinishReason reason, std::optional<Error> error = std::nullopt);
  void retire_ended();
  void publish_stats();

  const EngineOptions options_;
  const std::unique_ptr<Executor> executor_;
  Clock& clock_;
  const AdmissionLimits admission_limits_;
  const std::int32_t rows_max_;
  const Planner planner_;

  std::atomic<std::uint64_t> next_id_ = 1;
  std::atomic<std::uint64_t> answered_at_submit_ = 0;  // requests for no tokens
  const std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();
  Inbox inbox_;

  WaitingList waiting_;
  std::vector<Submission> leaving_;  // scratch of end_withdrawn() and stop()
  BlockPool pool_;
  std::vector<std::unique_ptr<ActiveRequest>> active_;  // in order of admission
  CostCalibration calibration_;
  std::vector<ActiveRequest*> runnable_;
  std::vector<const Sequence*> runnable_sequences_;  // of runnable_
  Schedule schedule_;
  std::vector<RowSampling> sampling_;  // of the schedule's rows
  std::vector<TokenOut> tokens_out_;
  std::vector<Ending> endings_;
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
      admission_limits_(admission_limits_of(executor_->info())),
      rows_max_(rows_max_of(options, executor_->info())),
      planner_(planner_limits_of(options, executor_->info())),
      inbox_(options.max_waiting),
      pool_(executor_->info().block_count) {
  CHECK(options_.max_waiting >= 1 && options_.max_gap_ms >= 1 && options_.outbox_events_max >= 1);
  const auto admitted_max = static_cast<std::size_t>(rows_max_) * kAdmittedPerRow;
  active_.reserve(admitted_max);
  runnable_.reserve(admitted_max);
  runnable_sequences_.reserve(admitted_max);
  schedule_.shares.reserve(admitted_max);
  schedule_.plan.rows.reserve(static_cast<std::size_t>(rows_max_));
  schedule_.plan.tokens.reserve(static_cast<std::size_t>(executor_->info().step_tokens_max));
  schedule_.plan.blocks.reserve(static_cast<std::size_t>(executor_->info().block_count));
  sampling_.reserve(static_cast<std::size_t>(rows_max_));
  tokens_out_.reserve(static_cast<std::size_t>(executor_->info().step_tokens_max));
  publish_stats();
}

Result<RequestHandle> Engine::Impl::submit(Request request) {
  LINNET_ASSIGN(const std::int32_t limit, admissible_limit(request, admission_limits_));
  const RequestId id{next_id_.fetch_add(1, std::memory_order_relaxed)};
  const auto outbox = std::make_shared<Outbox>(id, options_.outbox_events_max, doorbell_);
  const auto prompt_tokens = static_cast<std::int32_t>(request.prompt.size());
  if (limit == prompt_tokens && !inbox_.closed()) {
    answered_at_submit_.fetch_add(1, std::memory_order_relaxed);
    outbox->finish({.reason = FinishReason::kLength, .usage = {.prompt_tokens = prompt_tokens}, .error = std::nullopt});
    return RequestHandle(outbox);
  }
  LINNET_RETURN_IF_ERROR(inbox_.push({.request = std::move(request), .limit = limit, .outbox = outbox}));
  doorbell_->ring();
  return RequestHandle(outbox);
}

bool Engine::Impl::step() {
  admit();
  plan();
  const bool ran = !schedule_.plan.empty();
  if (ran) commit(run());
  publish_stats();
  emit();
  return ran;
}

// Ends what was withdrawn and lets in what fits, in the waiting list's order.
void Engine::Impl::admit() {
  inbox_.drain(waiting_.arrivals());
  waiting_.accept_arrivals();
  end_withdrawn();
  auto rows = static_cast<std::int32_t>(
      std::count_if(active_.begin(), active_.end(), [](const auto& request) { return request->outbox->has_room(); }));
  std::int32_t admitted = 0;
  const std::int32_t block_tokens = executor_->info().block_tokens;
  while (!waiting_.empty() && rows < rows_max_ && active_.size() < active_.capacity()) {
    std::optional<BlockRun> blocks = pool_.take((waiting_.next().limit + block_tokens - 1) / block_tokens);
    if (!blocks) break;
    active_.push_back(std::make_unique<ActiveRequest>(waiting_.take_next(), std::move(*blocks)));
    ++admitted;
    ++rows;
  }
  if (admitted > 0) inbox_.left(admitted);
}

void Engine::Impl::end_withdrawn() {
  waiting_.take_withdrawn(leaving_);
  for (Submission& submission : leaving_) end_waiting(submission, FinishReason::kCancelled);
  leaving_.clear();
  for (const auto& request : active_) {
    if (request->outbox->withdrawn()) end(*request, FinishReason::kCancelled);
  }
  retire_ended();
}

void Engine::Impl::plan() {
  runnable_.clear();
  runnable_sequences_.clear();
  for (const auto& request : active_) {
    if (!request->outbox->has_room()) continue;
    runnable_.push_back(request.get());
    runnable_sequences_.push_back(&request->sequence);
  }
  planner_.plan(runnable_sequences_, calibration_.ratio(), schedule_);
}

Result<const StepResult*> Engine::Impl::run() {
  sampling_.clear();
  for (const Share& share : schedule_.shares) sampling_.push_back({.params = runnable_[share.index]->sampling});
  const Clock::Duration begin = clock_.now();
  const Ticket ticket = executor_->launch(schedule_.plan);
  executor_->sample(ticket, sampling_);
  Result<const StepResult*> result = executor_->collect(ticket);  // the step's one synchronisation
  const std::chrono::duration<double, std::micro> took = clock_.now() - begin;
  if (schedule_.plan.tokens.size() > schedule_.plan.rows.size()) calibration_.observe(schedule_.cost_us, took.count());
  return result;
}

// The only place where a step's result changes sequences.
void Engine::Impl::commit(const Result<const StepResult*>& result) {
  ++counts_.steps;
  if (!result.ok()) {
    log_error("a step of " + std::to_string(schedule_.shares.size()) + " rows failed: " + result.error().message);
    for (const Share& share : schedule_.shares) end(*runnable_[share.index], FinishReason::kError, result.error());
  } else {
    const StepResult& step = **result;
    CHECK(step.rows.size() == schedule_.shares.size());
    for (std::size_t index = 0; index < step.rows.size(); ++index) {
      const Share& share = schedule_.shares[index];
      const RowResult& row = step.rows[index];
      CHECK(row.failed || row.token_count == schedule_.plan.rows[index].samples);
      commit_row(*runnable_[share.index], share.inputs, row, row.failed ? std::span<const TokenId>() : step.of(row));
    }
  }
  retire_ended();
}

void Engine::Impl::commit_row(ActiveRequest& request, std::int32_t inputs, const RowResult& row,
                              std::span<const TokenId> tokens) {
  Sequence& sequence = request.sequence;
  if (row.failed) {
    const std::string at =
        "the model's scores for token " + std::to_string(sequence.generated()) + " of the answer are not finite";
    log_warning(at);
    end(request, FinishReason::kError, Error{ErrorCode::kInternal, at + "; other requests are not affected", ""});
    return;
  }
  if (!sequence.decoding()) counts_.prompt_tokens += static_cast<std::uint64_t>(inputs);
  sequence.advance(inputs, counts_.steps);
  for (const TokenId token : tokens) {
    CHECK(index_of(token) < static_cast<std::size_t>(admission_limits_.vocabulary));
    sequence.append(token);
    ++counts_.completion_tokens;
    if (request.ends_with(token)) return end(request, FinishReason::kStop);
    tokens_out_.push_back({.outbox = request.outbox.get(), .token = token});
    if (sequence.at_limit()) return end(request, FinishReason::kLength);
  }
}

void Engine::Impl::emit() {
  for (const TokenOut& out : tokens_out_) out.outbox->push(out.token);
  tokens_out_.clear();
  for (Ending& ending : endings_) ending.outbox->finish(std::move(ending.event));
  endings_.clear();
}

void Engine::Impl::end(ActiveRequest& request, FinishReason reason, std::optional<Error> error) {
  CHECK(!request.ended);
  request.ended = true;
  ++counts_.requests_finished;
  if (reason == FinishReason::kCancelled) ++counts_.requests_cancelled;
  if (reason == FinishReason::kError) ++counts_.requests_failed;
  endings_.push_back(
      {.outbox = request.outbox, .event = {.reason = reason, .usage = request.usage(), .error = std::move(error)}});
}

void Engine::Impl::end_waiting(Submission& submission, FinishReason reason, std::optional<Error> error) {
  ++counts_.requests_finished;
  if (reason == FinishReason::kCancelled) ++counts_.requests_cancelled;
  if (reason == FinishReason::kError) ++counts_.requests_failed;
  const Usage usage{.prompt_tokens = static_cast<std::int32_t>(submission.request.prompt.size())};
  endings_.push_back(
      {.outbox = std::move(submission.outbox), .event = {.reason = reason, .usage = usage, .error = std::move(error)}});
  inbox_.left(1);
}

void Engine::Impl::retire_ended() {
  for (const auto& request : active_) {
    if (request->ended) executor_->release(request->sequence.id());
  }
  std::erase_if(active_, [](const auto& request) { return request->ended; });
}

void Engine::Impl::publish_stats() {
  counts_.rows_running = static_cast<std::int32_t>(active_.size());
  counts_.kv_blocks_total = pool_.size();
  counts_.kv_blocks_used = pool_.used();
  const std::lock_guard lock(stats_mutex_);
  published_ = counts_;
}

EngineStats Engine::Impl::stats() const {
  const std::lock_guard lock(stats_mutex_);
  EngineStats stats = published_;
  stats.requests_waiting = inbox_.waiting();
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
      if (!step()) doorbell_->wait();
    }
  });
}

void Engine::Impl::stop() {
  const std::lock_guard lock(lifetime_mutex_);
  inbox_.close();
  stopping_ = true;
  doorbell_->ring();
  if (thread_.joinable()) thread_.join();
  inbox_.drain(waiting_.arrivals());
  waiting_.accept_arrivals();
  waiting_.take_all(leaving_);
  for (Submission& submission : leaving_) end_waiting(submission, FinishReason::kError, stopping_error());
  leaving_.clear();
  for (const auto& request : active_) end(*request, FinishReason::kError, stopping_error());
  retire_ended();
  publish_stats();
  emit();
}

Engine::Engine(const EngineOptions& options, std::unique_ptr<Executor> executor, Clock& clock)
    : impl_(std::make_unique<Impl>(options, std::move(executor), clock)) {}

Engine::~Engine() { stop(); }

Result<RequestHandle> Engine::submit(Request request) { return impl_->submit(std::move(request)); }
bool Engine::step() { return impl_->step(); }
void Engine::start() { impl_->start(); }
void Engine::stop() { impl_->stop(); }
EngineStats Engine::stats() const { return impl_->stats(); }

}  // namespace linnet
