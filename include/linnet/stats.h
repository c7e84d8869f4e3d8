// Counters of an engine since its start, its state now, and what it did lately.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "linnet/event.h"
#include "linnet/status.h"

namespace linnet {

// How often something took how long. A value of fixed size: observing and copying allocate nothing.
struct Histogram {
  // Seconds; the last class has no bound.
  static constexpr std::array<double, 17> kBounds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,    1,     2.5,    5,     10,   30,    60,   120};

  std::array<std::uint64_t, kBounds.size() + 1> counts{};  // [i]: at most kBounds[i], more than kBounds[i - 1]
  double sum_s = 0;

  void observe(double seconds) {
    const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
    ++counts[static_cast<std::size_t>(bound - kBounds.begin())];
    sum_s += seconds;
  }
  std::uint64_t count() const { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }
  bool operator==(const Histogram&) const = default;
};

inline constexpr std::size_t kFinishReasons = static_cast<std::size_t>(FinishReason::kError) + 1;
inline constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::kInternal) + 1;

struct EngineStats {
  std::int32_t rows_running = 0;      // sequences admitted and not ended
  std::int32_t requests_running = 0;  // requests of these
  std::int32_t requests_waiting = 0;
  std::int32_t kv_blocks_total = 0;
  std::int32_t kv_blocks_used = 0;  // by sequences or the prompt cache
  std::int32_t cache_blocks = 0;    // in the prompt cache; sequences may share them
  std::uint64_t kv_block_bytes = 0;
  std::uint64_t steps = 0;
  std::uint64_t prompt_tokens = 0;      // computed in prefill
  std::uint64_t completion_tokens = 0;  // generated
  std::uint64_t requests_finished = 0;  // with any reason
  std::uint64_t requests_cancelled = 0;
  std::uint64_t requests_failed = 0;
  std::array<std::uint64_t, kFinishReasons> sequences_finished{};  // by FinishReason
  std::array<std::uint64_t, kErrorCodes> requests_rejected{};      // by submit(), by ErrorCode
  std::uint64_t cache_hits = 0;                                    // requests that began with KV of others
  std::uint64_t cache_misses = 0;                                  // that looked for some in vain
  std::uint64_t cache_hit_tokens = 0;
  std::uint64_t cache_blocks_evicted = 0;
  Histogram queue;        // from submission to admission
  Histogram ttft;         // from submission to a sequence's first token
  Histogram inter_token;  // from one token of a sequence to its next
  Histogram step;         // a turn of the loop that ran something
};

// KV in the prompt cache: the beginning of conversations, up to where one of them ended.
struct CacheEntry {
  std::uint64_t id = 0;          // never used again by this engine
  std::uint64_t name_space = 0;  // only requests of one namespace share KV
  std::int32_t tokens = 0;
  std::uint64_t bytes = 0;
  std::uint64_t own_bytes = 0;  // of these, that no other entry has
  std::uint64_t hits = 0;       // requests that began with some of it
  double idle_s = 0;            // since it was used last

  bool operator==(const CacheEntry&) const = default;
};

// One turn of the loop that ran something.
struct StepRecord {
  std::uint64_t number = 0;  // the first is 1
  double begin_s = 0;        // on the engine's clock
  double plan_us = 0;        // admitting and planning
  double run_us = 0;         // the executor's
  double commit_us = 0;      // taking over the result
  std::int32_t rows = 0;
  std::int32_t prefill_rows = 0;
  std::int32_t prefill_tokens = 0;  // inputs of prefill rows
  std::int32_t decode_tokens = 0;   // inputs of decode and verify rows
  std::int32_t samples = 0;         // inputs whose logits were sampled
  std::int32_t drafted = 0;         // of these, behind the first of their row
  std::int32_t accepted = 0;        // of the drafted
  bool failed = false;

  bool operator==(const StepRecord&) const = default;
};

inline constexpr std::size_t kStepRecordsMax = 256;  // that an engine keeps

enum class TraceKind : std::uint8_t { kQueued, kCacheLookup, kPrefill, kDecode, kDone };

// A part of a request's way. Times on the engine's clock.
struct TraceSpan {
  TraceKind kind = TraceKind::kQueued;
  std::int32_t choice = 0;  // sequence of the request
  std::int32_t tokens = 0;  // inputs computed; of kCacheLookup: found; of kDone: generated in all
  std::uint64_t step = 0;   // in which; 0: none
  double begin_s = 0;
  double end_s = 0;

  bool operator==(const TraceSpan&) const = default;
};

struct RequestTrace {
  std::string id;                // as the client named it
  std::vector<TraceSpan> spans;  // as they ended; once kTraceSpansMax are there, the last decode span takes in what follows
};

inline constexpr std::size_t kTraceSpansMax = 1024;
inline constexpr std::size_t kTracesMax = 64;  // that an engine keeps, the youngest

}  // namespace linnet
