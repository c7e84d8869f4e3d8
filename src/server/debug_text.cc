#include "server/debug_text.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicroseconds = 1e6;

const char* name_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::kQueued:
      return "queued";
    case TraceKind::kCacheLookup:
      return "cache.lookup_restore";
    case TraceKind::kPrefill:
      return "prefill";
    case TraceKind::kDecode:
      return "decode";
    case TraceKind::kDone:
      return "done";
  }
  return "";
}

}  // namespace

std::string steps_as_text(std::string_view model, std::span<const StepRecord> steps) {
  std::string text =
      std::string(model) +
      "\n      step     begin s  plan us    run us commit us  rows prefill  tokens decode samples drafts accepted\n";
  for (const StepRecord& step : steps) {
    char line[192];
    std::snprintf(line, sizeof line, "%10llu %11.3f %8.0f %9.0f %9.0f %5d %7d %7d %6d %7d %6d %8d%s\n",
                  static_cast<unsigned long long>(step.number), step.begin_s, step.plan_us, step.run_us, step.commit_us,
                  step.rows, step.prefill_rows, step.prefill_tokens, step.decode_tokens, step.samples, step.drafted,
                  step.accepted, step.failed ? " failed" : "");
    text += line;
  }
  return text;
}

std::string steps_as_json(std::string_view model, std::span<const StepRecord> steps) {
  Json list = Json::array();
  for (const StepRecord& step : steps) {
    list.push_back({{"step", step.number},
                    {"begin_s", step.begin_s},
                    {"plan_us", step.plan_us},
                    {"run_us", step.run_us},
                    {"commit_us", step.commit_us},
                    {"rows", step.rows},
                    {"prefill_rows", step.prefill_rows},
                    {"prefill_tokens", step.prefill_tokens},
                    {"decode_tokens", step.decode_tokens},
                    {"samples", step.samples},
                    {"drafted", step.drafted},
                    {"accepted", step.accepted},
                    {"failed", step.failed}});
  }
  return Json{{"model", model}, {"steps", std::move(list)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string trace_as_json(const RequestTrace& trace) {
  Json events = Json::array();
  for (const TraceSpan& span : trace.spans) {
    Json arguments = {{"tokens", span.tokens}};
    if (span.step != 0) arguments["step"] = span.step;
    events.push_back({{"name", name_of(span.kind)},
                      {"ph", "X"},
                      {"ts", span.begin_s * kMicroseconds},
                      {"dur", (span.end_s - span.begin_s) * kMicroseconds},
                      {"pid", 1},
                      {"tid", span.choice},
                      {"args", std::move(arguments)}});
  }
  return Json{{"traceEvents", std::move(events)}, {"otherData", {{"trace_id", trace.id}}}}.dump(-1, ' ', false,
                                                                                                Json::error_handler_t::replace);
}

}  // namespace linnet
