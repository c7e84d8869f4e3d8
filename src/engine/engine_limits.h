// What an engine's options and its executor allow together, for each part that must know.
#pragma once

#include <cstdint>

#include "engine/active_set.h"
#include "engine/admission.h"
#include "engine/executor.h"
#include "linnet/options.h"
#include "sched/planner.h"

namespace linnet {

std::int32_t rows_max_of(const EngineOptions& options, const ExecutorInfo& info);
AdmissionLimits admission_limits_of(const EngineOptions& options, const ExecutorInfo& info);
ActiveLimits active_limits_of(const EngineOptions& options, const ExecutorInfo& info);
PlannerLimits planner_limits_of(const EngineOptions& options, const ExecutorInfo& info);

}  // namespace linnet
