// Counters of an engine since its start, and its state now.
#pragma once

#include <cstdint>

namespace linnet {

struct EngineStats {
  std::int32_t rows_running = 0;      // sequences admitted and not ended
  std::int32_t requests_running = 0;  // requests of these
  std::int32_t requests_waiting = 0;
  std::int32_t kv_blocks_total = 0;
  std::int32_t kv_blocks_used = 0;
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;      // computed in prefill
  std::uint64_t completion_tokens = 0;  // generated
  std::uint64_t requests_finished = 0;  // with any reason
  std::uint64_t requests_cancelled = 0;
  std::uint64_t requests_failed = 0;
};

}  // namespace linnet
