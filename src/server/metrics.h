// GET /metrics: engines' stats in the text format of Prometheus.
#pragma once

#include <span>
#include <string>

#include "linnet/stats.h"

namespace linnet {

struct ModelStats {
  std::string model;
  EngineStats stats;
};

inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

std::string encode_metrics(std::span<const ModelStats> models);

}  // namespace linnet
