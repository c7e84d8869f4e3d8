// Options of an engine and of loading a model. `linnet serve --help` has the flags of the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "linnet/sampling.h"

namespace linnet {

struct EngineOptions {
  std::int32_t max_rows = 32;             // rows in one step
  std::int32_t max_waiting = 64;          // requests not yet admitted; more are refused with kQueueFull
  std::int32_t max_gap_ms = 60;           // a running row's longest wait for its next token while prompts are prefilled
  std::int32_t outbox_events_max = 1024;  // unread events of one request before its row pauses
  // KV of ended requests that is kept, at most; absent: all that running ones leave free; 0: none.
  std::optional<std::uint64_t> prompt_cache_bytes{};
};

enum class BackendKind { kAuto, kCpu, kMlx };
enum class DeviceKind { kAuto, kCpu, kGpu };

struct LoadOptions {
  std::string model;  // a path (folder or .gguf) of an existing model
  BackendKind backend = BackendKind::kAuto;
  DeviceKind device = DeviceKind::kAuto;
  std::int32_t threads = 0;  // kernel threads; 0: as many as affinity and cgroup allow
  bool pin_threads = true;
  std::int32_t context = 0;                // tokens of prompt + answer; 0: the model's own, within memory
  std::uint64_t memory_budget_bytes = 0;   // weights + KV + scratch; 0: 75 % of RAM or of the cgroup's limit
  std::string chat_template_file;          // overrides the model's own template
  std::string reasoning_parser;            // name of a kind of reasoning markers, or none; empty: from the template
  SamplingOverrides sampling;              // defaults for requests, before those of the model's file
  std::optional<std::int32_t> max_tokens;  // default for requests
  EngineOptions engine;
};

}  // namespace linnet
