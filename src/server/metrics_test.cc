#include "server/metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "server/debug_text.h"

namespace linnet {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, SayWhatStatsSayForEachModel) {
  EngineStats stats{.requests_running = 2, .requests_waiting = 3, .kv_blocks_total = 100, .kv_blocks_used = 7};
  stats.completion_tokens = 123456789;
  stats.sequences_finished = {5, 1, 0, 2};
  stats.requests_rejected[static_cast<std::size_t>(ErrorCode::kQueueFull)] = 4;
  for (const double seconds : {0.0004, 0.03, 0.04, 500.0}) stats.ttft.observe(seconds);
  const std::array<ModelStats, 2> models = {ModelStats{"a", stats}, ModelStats{"b\"\n", {}}};
  const std::string text = encode_metrics(models);
  for (const char* line : {
           "# TYPE linnet_requests_running gauge",
           "linnet_requests_running{model=\"a\"} 2",
           "linnet_requests_waiting{model=\"a\"} 3",
           "linnet_requests_running{model=\"b\\\"\\n\"} 0",
           "linnet_kv_blocks_used{model=\"a\"} 7",
           "linnet_kv_blocks_total{model=\"a\"} 100",
           "linnet_completion_tokens_total{model=\"a\"} 123456789",
           "linnet_sequences_finished_total{model=\"a\",reason=\"stop\"} 5",
           "linnet_sequences_finished_total{model=\"a\",reason=\"error\"} 2",
           "linnet_requests_rejected_total{model=\"a\",reason=\"queue_full\"} 4",
           "# TYPE linnet_ttft_seconds histogram",
           "linnet_ttft_seconds_count{model=\"a\"} 4",
           "linnet_ttft_seconds_bucket{model=\"a\",le=\"0.0005\"} 1",
           "linnet_ttft_seconds_bucket{model=\"a\",le=\"0.05\"} 3",
           "linnet_ttft_seconds_bucket{model=\"a\",le=\"120\"} 3",
           "linnet_ttft_seconds_bucket{model=\"a\",le=\"+Inf\"} 4",
       }) {
    EXPECT_TRUE(has_line(text, line)) << line << "\nin\n" << text;
  }
}

TEST(DebugText, StepsAsTextAndJson) {
  const std::array<StepRecord, 1> steps = {StepRecord{.number = 7,
                                                      .begin_s = 1.5,
                                                      .plan_us = 10,
                                                      .run_us = 2000,
                                                      .commit_us = 5,
                                                      .rows = 3,
                                                      .prefill_rows = 1,
                                                      .prefill_tokens = 64,
                                                      .decode_tokens = 2,
                                                      .samples = 2,
                                                      .failed = true}};
  EXPECT_EQ(steps_as_json("m", steps),
            R"({"model":"m","steps":[{"step":7,"begin_s":1.5,"plan_us":10.0,"run_us":2000.0,"commit_us":5.0,"rows":3,)"
            R"("prefill_rows":1,"prefill_tokens":64,"decode_tokens":2,"samples":2,"drafted":0,"accepted":0,"failed":true}]})");
  const std::string text = steps_as_text("m", steps);
  EXPECT_TRUE(has_line(text,
                       "         7       1.500       10      2000         5     3       1      64      2       2      0        0"
                       " failed"))
      << text;
}

TEST(DebugText, ATraceAsChromeReadsIt) {
  const RequestTrace trace{
      .id = "a",
      .spans = {{.kind = TraceKind::kQueued, .begin_s = 1, .end_s = 1.5},
                {.kind = TraceKind::kPrefill, .choice = 1, .tokens = 9, .step = 4, .begin_s = 1.5, .end_s = 2}}};
  EXPECT_EQ(trace_as_json(trace),
            R"({"traceEvents":[{"name":"queued","ph":"X","ts":1000000.0,"dur":500000.0,"pid":1,"tid":0,"args":{"tokens":0}},)"
            R"({"name":"prefill","ph":"X","ts":1500000.0,"dur":500000.0,"pid":1,"tid":1,"args":{"tokens":9,"step":4}}],)"
            R"("otherData":{"trace_id":"a"}})");
}

}  // namespace
}  // namespace linnet
