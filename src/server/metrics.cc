#include "server/metrics.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace linnet {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr std::array<const char*, kFinishReasons> kFinishNames = {"stop", "length", "cancelled", "error"};
constexpr std::array<const char*, kErrorCodes> kErrorNames = {
    "invalid_argument", "not_found",  "unsupported", "context_length_exceeded",
    "too_large",        "queue_full", "cancelled",   "deadline_exceeded",
    "corrupt",          "io",         "unavailable", "internal"};

ClientMetric labelled(const std::string& model) { return {.label = {{"model", model}}}; }

ClientMetric labelled(const std::string& model, const char* name, const char* value) {
  return {.label = {{"model", model}, {name, value}}};
}

class Families {
 public:
  explicit Families(std::span<const ModelStats> models) : models_(models) {}

  template <class Get>
  void gauge(const char* name, const char* help, const Get& get) {
    MetricFamily& family = add(name, help, MetricType::Gauge);
    for (const ModelStats& model : models_) {
      ClientMetric metric = labelled(model.model);
      metric.gauge.value = static_cast<double>(get(model.stats));
      family.metric.push_back(std::move(metric));
    }
  }

  template <class Get>
  void counter(const char* name, const char* help, const Get& get) {
    MetricFamily& family = add(name, help, MetricType::Counter);
    for (const ModelStats& model : models_) {
      ClientMetric metric = labelled(model.model);
      metric.counter.value = static_cast<double>(get(model.stats));
      family.metric.push_back(std::move(metric));
    }
  }

  // One counter for each of `names`, which are the values of the label "reason".
  template <std::size_t N>
  void counters(const char* name, const char* help, const std::array<const char*, N>& names,
                std::array<std::uint64_t, N> EngineStats::*counts) {
    MetricFamily& family = add(name, help, MetricType::Counter);
    for (const ModelStats& model : models_) {
      for (std::size_t i = 0; i < N; ++i) {
        ClientMetric metric = labelled(model.model, "reason", names[i]);
        metric.counter.value = static_cast<double>((model.stats.*counts)[i]);
        family.metric.push_back(std::move(metric));
      }
    }
  }

  void histogram(const char* name, const char* help, Histogram EngineStats::*histogram) {
    MetricFamily& family = add(name, help, MetricType::Histogram);
    for (const ModelStats& model : models_) {
      const Histogram& source = model.stats.*histogram;
      ClientMetric metric = labelled(model.model);
      std::uint64_t below = 0;
      for (std::size_t i = 0; i < source.counts.size(); ++i) {
        below += source.counts[i];
        const double bound = i < Histogram::kBounds.size() ? Histogram::kBounds[i] : std::numeric_limits<double>::infinity();
        metric.histogram.bucket.push_back({.cumulative_count = below, .upper_bound = bound});
      }
      metric.histogram.sample_count = below;
      metric.histogram.sample_sum = source.sum_s;
      family.metric.push_back(std::move(metric));
    }
  }

  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  MetricFamily& add(const char* name, const char* help, MetricType type) {
    families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
    return families_.back();
  }

  std::span<const ModelStats> models_;
  std::vector<MetricFamily> families_;
};

void add_state(Families& families) {
  families.gauge("linnet_requests_running", "Requests admitted and not ended",
                 [](const EngineStats& stats) { return stats.requests_running; });
  families.gauge("linnet_requests_waiting", "Requests not yet admitted",
                 [](const EngineStats& stats) { return stats.requests_waiting; });
  families.gauge("linnet_rows_running", "Sequences of running requests",
                 [](const EngineStats& stats) { return stats.rows_running; });
  families.gauge("linnet_kv_blocks_used", "KV blocks held by running requests or the prompt cache",
                 [](const EngineStats& stats) { return stats.kv_blocks_used; });
  families.gauge("linnet_kv_blocks_total", "KV blocks there are", [](const EngineStats& stats) { return stats.kv_blocks_total; });
  families.gauge("linnet_cache_bytes", "KV in the prompt cache", [](const EngineStats& stats) {
    return static_cast<double>(stats.cache_blocks) * static_cast<double>(stats.kv_block_bytes);
  });
}

void add_cache(Families& families) {
  families.counter("linnet_cache_hits_total", "Requests that began with KV of earlier ones",
                   [](const EngineStats& stats) { return stats.cache_hits; });
  families.counter("linnet_cache_misses_total", "Requests of whose prompt nothing was in the prompt cache",
                   [](const EngineStats& stats) { return stats.cache_misses; });
  families.counter("linnet_cache_hit_tokens_total", "Tokens of prompts that were not computed again",
                   [](const EngineStats& stats) { return stats.cache_hit_tokens; });
  families.counter("linnet_cache_evicted_blocks_total", "KV blocks that gave way to others",
                   [](const EngineStats& stats) { return stats.cache_blocks_evicted; });
}

void add_counts(Families& families) {
  families.counter("linnet_steps_total", "Turns of the engine's loop that ran something",
                   [](const EngineStats& stats) { return stats.steps; });
  families.counter("linnet_prompt_tokens_total", "Tokens computed in prefill",
                   [](const EngineStats& stats) { return stats.prompt_tokens; });
  families.counter("linnet_completion_tokens_total", "Tokens generated",
                   [](const EngineStats& stats) { return stats.completion_tokens; });
  families.counter("linnet_requests_finished_total", "Requests ended, for any reason",
                   [](const EngineStats& stats) { return stats.requests_finished; });
  families.counter("linnet_requests_cancelled_total", "Requests that their consumers cancelled",
                   [](const EngineStats& stats) { return stats.requests_cancelled; });
  families.counters("linnet_sequences_finished_total", "Sequences ended, by reason", kFinishNames,
                    &EngineStats::sequences_finished);
  families.counters("linnet_requests_rejected_total", "Requests that were not taken, by reason", kErrorNames,
                    &EngineStats::requests_rejected);
}

void add_times(Families& families) {
  families.histogram("linnet_queue_seconds", "From a request's submission to its admission", &EngineStats::queue);
  families.histogram("linnet_ttft_seconds", "From a request's submission to a sequence's first token", &EngineStats::ttft);
  families.histogram("linnet_inter_token_seconds", "From one token of a sequence to its next", &EngineStats::inter_token);
  families.histogram("linnet_step_seconds", "A turn of the engine's loop that ran something", &EngineStats::step);
}

}  // namespace

std::string encode_metrics(std::span<const ModelStats> models) {
  Families families(models);
  add_state(families);
  add_counts(families);
  add_cache(families);
  add_times(families);
  return families.text();
}

}  // namespace linnet
