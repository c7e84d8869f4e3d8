// A folder's config.json as a ModelConfig.
#pragma once

#include "linnet/status.h"
#include "model/config.h"
#include "weights/config_json.h"

namespace linnet {

// Errors: kUnsupported (architecture, with the known ones; a key that changes the arithmetic in a way that is not followed),
// kCorrupt (a key that is missing, of the wrong type, or out of bounds).
Result<ModelConfig> read_folder_config(const ConfigJson& json);

}  // namespace linnet
