// A GGUF file's metadata as a ModelConfig.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "linnet/status.h"
#include "model/config.h"
#include "weights/gguf.h"

namespace linnet {

// What a model may look like. Anything else is refused, naming key, value and limit.
struct ConfigLimits {
  static constexpr std::int64_t kLayersMax = 10'000;
  static constexpr std::int64_t kHiddenMax = 1 << 20;
  static constexpr std::int64_t kIntermediateMax = 1 << 22;
  static constexpr std::int64_t kHeadsMax = 4'096;
  static constexpr std::int64_t kHeadDimMax = 1'024;
  static constexpr std::int64_t kVocabularyMax = 1 << 20;  // what a sampler can add up
  static constexpr std::int64_t kContextMax = 1 << 24;
};

// general.architecture of the files that can be read.
std::span<const std::string_view> known_architectures();

// Errors: kUnsupported (architecture, with the known ones; experts, layers that differ, rope kinds, ...), kCorrupt (a key that is
// missing, of the wrong type, or out of bounds). Counts agree with the embedding's shape afterwards.
Result<ModelConfig> read_gguf_config(const GgufFile& file);

}  // namespace linnet
