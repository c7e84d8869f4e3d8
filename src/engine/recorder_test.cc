#include "engine/recorder.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

using std::chrono::milliseconds;

StepPlan plan_of(std::vector<RowPlan> rows) {
  StepPlan plan;
  plan.rows = std::move(rows);
  return plan;
}

TEST(Recorder, AStepSaysWhatItsRowsDidAndHowLongItsPartsTook) {
  Recorder recorder;
  const RequestTimes request = recorder.arrived("", milliseconds(0));
  SequenceTimes prompt;
  SequenceTimes answer{.last_token = milliseconds(90)};
  recorder.begin_step(milliseconds(100));
  recorder.planned(plan_of({{.samples = 0, .input_count = 64}, {.samples = 4, .input_count = 4}}), milliseconds(101));
  recorder.ran(milliseconds(121));
  recorder.row(request, prompt, {.prefill = true, .inputs = 64});
  recorder.row(request, answer, {.inputs = 4, .tokens = 3});
  recorder.end_step(false, milliseconds(123));
  const StepRecord expected{.number = 1,
                            .begin_s = 0.1,
                            .plan_us = 1000,
                            .run_us = 20000,
                            .commit_us = 2000,
                            .rows = 2,
                            .prefill_rows = 1,
                            .prefill_tokens = 64,
                            .decode_tokens = 4,
                            .samples = 4,
                            .drafted = 3,
                            .accepted = 2};
  EXPECT_EQ(recorder.steps(), std::vector{expected});
  EngineStats stats;
  recorder.copy_to(stats);
  EXPECT_EQ(stats.ttft.count(), 0U);
  EXPECT_EQ(stats.inter_token.count(), 3U);
  EXPECT_DOUBLE_EQ(stats.inter_token.sum_s, 0.031);  // two of the three came with the first
  EXPECT_EQ(stats.step.count(), 1U);
}

TEST(Recorder, KeepsTheLastSteps) {
  Recorder recorder;
  const int count = static_cast<int>(kStepRecordsMax) + 10;
  for (int i = 0; i < count; ++i) {
    recorder.begin_step(milliseconds(i));
    recorder.planned({}, milliseconds(i));
    recorder.ran(milliseconds(i));
    recorder.end_step(false, milliseconds(i));
  }
  const std::vector<StepRecord> steps = recorder.steps();
  ASSERT_EQ(steps.size(), kStepRecordsMax);
  EXPECT_EQ(steps.front().number, 11U);
  EXPECT_EQ(steps.back().number, static_cast<std::uint64_t>(count));
}

TEST(Recorder, ATraceFollowsItsRequest) {
  Recorder recorder;
  const RequestTimes request = recorder.arrived("abc", milliseconds(10));
  const RequestTimes other = recorder.arrived("", milliseconds(10));
  SequenceTimes sequence{.choice = 1};
  recorder.begin_step(milliseconds(30));
  recorder.admitted(request);
  recorder.admitted(other);
  recorder.planned(plan_of({{.samples = 1, .input_count = 7}}), milliseconds(31));
  recorder.ran(milliseconds(40));
  recorder.row(request, sequence, {.prefill = true, .inputs = 7, .tokens = 1});
  recorder.ended(request, {.choice = 1, .generated = 1}, FinishReason::kLength);
  recorder.end_step(false, milliseconds(41));
  EXPECT_FALSE(recorder.trace("ab"));
  const std::optional<RequestTrace> trace = recorder.trace("abc");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->spans, (std::vector<TraceSpan>{
                              {.kind = TraceKind::kQueued, .begin_s = 0.01, .end_s = 0.03},
                              {.kind = TraceKind::kPrefill, .choice = 1, .tokens = 7, .step = 1, .begin_s = 0.031, .end_s = 0.04},
                              {.kind = TraceKind::kDone, .choice = 1, .tokens = 1, .begin_s = 0.04, .end_s = 0.04}}));
  EngineStats stats;
  recorder.copy_to(stats);
  EXPECT_EQ(stats.queue.count(), 2U);
  EXPECT_EQ(stats.ttft.count(), 1U);
  EXPECT_DOUBLE_EQ(stats.ttft.sum_s, 0.03);
  EXPECT_EQ(stats.sequences_finished, (std::array<std::uint64_t, kFinishReasons>{0, 1, 0, 0}));
}

TEST(Recorder, TracesAreBounded) {
  Recorder recorder;
  for (std::size_t i = 0; i <= kTracesMax; ++i) recorder.arrived(std::to_string(i), milliseconds(0));
  EXPECT_FALSE(recorder.trace("0"));
  EXPECT_TRUE(recorder.trace("1"));

  const RequestTimes request = recorder.arrived("long", milliseconds(0));
  SequenceTimes sequence;
  for (std::size_t i = 0; i < 2 * kTraceSpansMax; ++i) recorder.row(request, sequence, {.inputs = 1, .tokens = 1});
  const std::optional<RequestTrace> trace = recorder.trace("long");
  ASSERT_TRUE(trace);
  ASSERT_EQ(trace->spans.size(), kTraceSpansMax);
  EXPECT_EQ(trace->spans.back().tokens, static_cast<std::int32_t>(kTraceSpansMax) + 1);
}

TEST(Recorder, AnEngineRecordsWhatItsRequestsDid) {
  EngineRig rig({.max_rows = 4, .max_waiting = 1});
  RequestHandle traced = rig.submit({.prompt = prompt_of(40), .max_tokens = 3, .trace_id = "abc"});
  EXPECT_FALSE(rig.engine().submit({.prompt = prompt_of(4)}).ok());  // the queue holds one
  const Answer answer = rig.read_all(traced);
  ASSERT_EQ(answer.tokens.size(), 3U);

  const std::vector<StepRecord> steps = rig.engine().recent_steps();
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].prefill_tokens, 40);
  EXPECT_EQ(steps[0].samples, 1);
  EXPECT_EQ(steps[1].decode_tokens, 1);
  EXPECT_EQ(steps[2].number, 3U);
  EXPECT_GT(steps[0].run_us, steps[1].run_us);
  const std::optional<RequestTrace> trace = rig.engine().trace("abc");
  ASSERT_TRUE(trace);
  std::vector<TraceKind> kinds;
  for (const TraceSpan& span : trace->spans) kinds.push_back(span.kind);
  EXPECT_EQ(kinds,
            (std::vector{TraceKind::kQueued, TraceKind::kPrefill, TraceKind::kDecode, TraceKind::kDone, TraceKind::kDecode}));

  const EngineStats stats = rig.engine().stats();
  EXPECT_EQ(stats.queue.count(), 1U);
  EXPECT_EQ(stats.ttft.count(), 1U);
  EXPECT_EQ(stats.inter_token.count(), 2U);
  EXPECT_EQ(stats.step.count(), 3U);
  EXPECT_EQ(stats.sequences_finished[static_cast<std::size_t>(FinishReason::kLength)], 1U);
  EXPECT_EQ(stats.requests_rejected[static_cast<std::size_t>(ErrorCode::kQueueFull)], 1U);
}

TEST(Recorder, HistogramsPutABoundIntoItsOwnClass) {
  Histogram histogram;
  for (const double value : {0.0, 0.0005, 0.00051, 120.0, 121.0}) histogram.observe(value);
  EXPECT_EQ(histogram.counts.front(), 2U);
  EXPECT_EQ(histogram.counts[1], 1U);
  EXPECT_EQ(histogram.counts[Histogram::kBounds.size() - 1], 1U);
  EXPECT_EQ(histogram.counts.back(), 1U);
  EXPECT_EQ(histogram.count(), 5U);
}

}  // namespace
}  // namespace linnet
