#include "engine/recorder.h"

#include <algorithm>
#include <utility>

namespace linnet {
namespace {

double seconds(Clock::Duration time) { return std::chrono::duration<double>(time).count(); }
double microseconds(Clock::Duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

}  // namespace

RequestTimes Recorder::arrived(std::string trace_id, Clock::Duration now) {
  RequestTimes times{.arrived = now};
  if (trace_id.empty()) return times;
  times.trace = std::make_shared<RequestTrace>(RequestTrace{.id = std::move(trace_id)});
  times.trace->spans.reserve(kTraceSpansMax);
  const std::lock_guard lock(mutex_);
  if (traces_.size() == kTracesMax) traces_.pop_front();
  traces_.push_back(times.trace);
  return times;
}

std::vector<StepRecord> Recorder::steps() const {
  const std::lock_guard lock(mutex_);
  std::vector<StepRecord> steps;
  const std::uint64_t kept = std::min<std::uint64_t>(recorded_, kStepRecordsMax);
  for (std::uint64_t i = recorded_ - kept; i < recorded_; ++i) steps.push_back(ring_[i % kStepRecordsMax]);
  return steps;
}

std::optional<RequestTrace> Recorder::trace(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(traces_.rbegin(), traces_.rend(), [&](const auto& trace) { return trace->id == id; });
  if (found == traces_.rend()) return std::nullopt;
  return **found;
}

void Recorder::rejected(ErrorCode code) {
  const std::lock_guard lock(mutex_);
  ++rejected_[static_cast<std::size_t>(code)];
}

void Recorder::copy_rejected(EngineStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.requests_rejected = rejected_;
}

void Recorder::admitted(const RequestTimes& request) {
  queue_.observe(seconds(now_ - request.arrived));
  add_span(request, {.kind = TraceKind::kQueued, .begin_s = seconds(request.arrived), .end_s = seconds(now_)});
}

void Recorder::looked_up(const RequestTimes& request, const SequenceTimes& sequence, std::int32_t tokens, Clock::Duration begin) {
  add_span(request, {.kind = TraceKind::kCacheLookup,
                     .choice = sequence.choice,
                     .tokens = tokens,
                     .begin_s = seconds(begin),
                     .end_s = seconds(now_)});
}

void Recorder::planned(const StepPlan& plan, Clock::Duration now) {
  now_ = planned_ = now;
  step_ = {.number = step_.number + 1, .begin_s = seconds(begin_), .rows = static_cast<std::int32_t>(plan.rows.size())};
  for (const RowPlan& row : plan.rows) {
    step_.samples += row.samples;
    step_.drafted += std::max(row.samples - 1, 0);
  }
}

void Recorder::row(const RequestTimes& request, SequenceTimes& sequence, const RowDone& done) {
  step_.prefill_rows += done.prefill ? 1 : 0;
  (done.prefill ? step_.prefill_tokens : step_.decode_tokens) += done.inputs;
  step_.accepted += std::max(done.tokens - 1, 0);
  for (std::int32_t i = 0; i < done.tokens; ++i) {
    if (sequence.last_token) {
      inter_token_.observe(seconds(ran_ - *sequence.last_token));
    } else {
      ttft_.observe(seconds(ran_ - request.arrived));
    }
    sequence.last_token = ran_;
  }
  add_span(request, {.kind = done.prefill ? TraceKind::kPrefill : TraceKind::kDecode,
                     .choice = sequence.choice,
                     .tokens = done.inputs,
                     .step = step_.number,
                     .begin_s = seconds(planned_),
                     .end_s = seconds(ran_)});
}

void Recorder::end_step(bool failed, Clock::Duration now) {
  step_.plan_us = microseconds(planned_ - begin_);
  step_.run_us = microseconds(ran_ - planned_);
  step_.commit_us = microseconds(now - ran_);
  step_.failed = failed;
  steps_taken_.observe(seconds(now - begin_));
  const std::lock_guard lock(mutex_);
  ring_[recorded_++ % kStepRecordsMax] = step_;
}

void Recorder::ended(const RequestTimes& request, const SequenceEnd& end, FinishReason reason) {
  ++finished_[static_cast<std::size_t>(reason)];
  add_span(request, {.kind = TraceKind::kDone,
                     .choice = end.choice,
                     .tokens = end.generated,
                     .begin_s = seconds(now_),
                     .end_s = seconds(now_)});
}

void Recorder::copy_to(EngineStats& stats) const {
  stats.queue = queue_;
  stats.ttft = ttft_;
  stats.inter_token = inter_token_;
  stats.step = steps_taken_;
  stats.sequences_finished = finished_;
}

void Recorder::add_span(const RequestTimes& request, const TraceSpan& span) {
  if (!request.trace) return;
  const std::lock_guard lock(mutex_);
  std::vector<TraceSpan>& spans = request.trace->spans;
  if (spans.size() < kTraceSpansMax) {
    spans.push_back(span);
    return;
  }
  spans.back().tokens += span.kind == TraceKind::kDone ? 0 : span.tokens;
  spans.back().end_s = span.end_s;
}

}  // namespace linnet
