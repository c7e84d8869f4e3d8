// What a GGUF file says about rotary positions.
#pragma once

#include <span>
#include <string>

#include "linnet/status.h"
#include "model/config.h"
#include "weights/gguf.h"

namespace linnet {

// `prefix`: the architecture's, "llama."; `config`: has head_dim and context_max. Errors: kUnsupported (a kind or a key that is
// not followed), kCorrupt.
Result<RopeConfig> read_gguf_rope(std::span<const GgufFile> files, const std::string& prefix, const ModelConfig& config);

}  // namespace linnet
