// What the debug routes show: an engine's last steps, and one request's way as Chrome's trace viewer reads it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "linnet/stats.h"

namespace linnet {

// A line for each step, under a line that names the columns.
std::string steps_as_text(std::string_view model, std::span<const StepRecord> steps);
// {"model":...,"steps":[{...}]}
std::string steps_as_json(std::string_view model, std::span<const StepRecord> steps);

// {"traceEvents":[...]}: complete events ("ph":"X"), microseconds since the engine's clock began; one track for each sequence.
std::string trace_as_json(const RequestTrace& trace);

}  // namespace linnet
