// What the engine did lately, and how long it took: steps, traces of requests, histograms.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "linnet/stats.h"
#include "sched/step_plan.h"

namespace linnet {

// A request from its submission on; shared by its sequences.
struct RequestTimes {
  Clock::Duration arrived{};
  std::shared_ptr<RequestTrace> trace;  // null: not traced. Guarded by the recorder.
};

// One sequence of it.
struct SequenceTimes {
  std::int32_t choice = 0;
  std::optional<Clock::Duration> last_token;
};

// What one row did in the step that ran last.
struct RowDone {
  bool prefill = false;
  std::int32_t inputs = 0;
  std::int32_t tokens = 0;  // sampled and kept
};

// What a sequence was at its end.
struct SequenceEnd {
  std::int32_t choice = 0;
  std::int32_t generated = 0;  // tokens
};

// Threads: arrived(), rejected(), steps(), trace() and copy_rejected() from any, the rest from the engine's. Nothing allocates
// but arrived() and the copies. Order of calls in a step: begin_step, admitted and ended, planned, ran, row and ended, end_step.
class Recorder {
 public:
  // Begins a trace if `trace_id` is not empty. One that has the name of an earlier one hides it.
  RequestTimes arrived(std::string trace_id, Clock::Duration now);
  std::vector<StepRecord> steps() const;  // the last kStepRecordsMax, in order
  std::optional<RequestTrace> trace(std::string_view id) const;

  void rejected(ErrorCode code);
  void copy_rejected(EngineStats& stats) const;

  void begin_step(Clock::Duration now) { now_ = begin_ = now; }
  void admitted(const RequestTimes& request);
  // A sequence that was let in at `begin` found so many tokens of its prompt, and begins now.
  void looked_up(const RequestTimes& request, const SequenceTimes& sequence, std::int32_t tokens, Clock::Duration begin);
  void planned(const StepPlan& plan, Clock::Duration now);
  void ran(Clock::Duration now) { now_ = ran_ = now; }
  void row(const RequestTimes& request, SequenceTimes& sequence, const RowDone& done);
  void end_step(bool failed, Clock::Duration now);
  void ended(const RequestTimes& request, const SequenceEnd& end, FinishReason reason);

  // Its part of the stats, but for copy_rejected()'s.
  void copy_to(EngineStats& stats) const;

 private:
  void add_span(const RequestTimes& request, const TraceSpan& span);

  Clock::Duration now_{};  // the latest of the next three
  Clock::Duration begin_{};
  Clock::Duration planned_{};
  Clock::Duration ran_{};
  StepRecord step_;
  Histogram queue_, ttft_, inter_token_, steps_taken_;
  std::array<std::uint64_t, kFinishReasons> finished_{};

  mutable std::mutex mutex_;  // guards what follows and all traces
  std::array<StepRecord, kStepRecordsMax> ring_;
  std::uint64_t recorded_ = 0;
  std::deque<std::shared_ptr<RequestTrace>> traces_;
  std::array<std::uint64_t, kErrorCodes> rejected_{};
};

}  // namespace linnet
