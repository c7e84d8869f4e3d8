// A GGUF file's metadata as a ModelConfig.
#pragma once

#include <span>

#include "linnet/status.h"
#include "model/config.h"
#include "weights/gguf.h"

namespace linnet {

// `files`: one, or the parts of a split model, of which the first has the metadata. Errors: kUnsupported (architecture, with the
// known ones; experts, layers that differ, rope kinds, ...), kCorrupt (a key that is missing, of the wrong type, or out of
// bounds). Counts agree with the embedding's shape afterwards.
Result<ModelConfig> read_gguf_config(std::span<const GgufFile> files);

}  // namespace linnet
