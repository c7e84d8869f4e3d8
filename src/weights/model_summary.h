// What a model's headers say, also of models that cannot be run here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linnet/status.h"
#include "model/config.h"
#include "weights/model_file.h"

namespace linnet {

struct TensorSummary {
  std::string name;
  std::string format;               // "Q4_0", "BF16", "affine 4-bit, groups of 32"
  std::vector<std::int64_t> shape;  // outermost first
  std::uint64_t bytes = 0;          // with scales; 0: of a format whose size is not known
};

struct FormatSummary {
  std::string format;
  std::int64_t tensors = 0;
  std::uint64_t bytes = 0;
};

struct ModelSummary {
  std::string path;
  std::string name;
  std::string architecture;            // as the file calls it
  std::int32_t files = 0;              // that hold weights
  std::vector<TensorSummary> tensors;  // by name
  std::vector<FormatSummary> formats;  // most bytes first
  // Of a model that can be run here; else `unsupported` says what is in the way.
  std::optional<ModelConfig> config;
  std::int64_t parameters = 0;
  GenerationDefaults generation;
  bool chat_template = false;
  std::vector<std::string> warnings;
  std::string unsupported;
};

// Reads headers and JSON only, as open_model_file() does. Errors: its own, but for kUnsupported of a file that can be listed.
Result<ModelSummary> summarize_model(const std::string& path);

}  // namespace linnet
