// What a folder's config.json says about rotary positions.
#pragma once

#include "linnet/status.h"
#include "model/config.h"
#include "weights/config_json.h"

namespace linnet {

// `config`: has head_dim and context_max. Reads rope_theta, rope_scaling (with "type" or "rope_type") and rope_parameters.
// Errors: kUnsupported (a kind that is not known, with the known ones; a key that is not followed), kCorrupt (missing, out of
// bounds).
Result<RopeConfig> read_folder_rope(const ConfigJson& json, const ModelConfig& config);

}  // namespace linnet
