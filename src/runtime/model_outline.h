// What can be said of a model before it is loaded.
#pragma once

#include <cstdint>
#include <string>

#include "linnet/options.h"
#include "linnet/status.h"
#include "weights/model_file.h"

namespace linnet {

// What replies call a model: a GGUF file's own name, or what a folder calls itself.
std::string model_id(const ModelFile& file, const LoadOptions& options);

struct ModelOutline {
  std::string id;
  // Without which it cannot be loaded: weights, scratch, and the KV of one sequence of --context tokens (absent: of 4,096, or the
  // model's own if that is less). On MLX estimated from the files' size.
  std::uint64_t least_bytes = 0;
};

// Reads headers alone. Errors: those of open_model_file, and of cpu::plan_memory.
Result<ModelOutline> outline_model(const LoadOptions& options);

}  // namespace linnet
