// End tokens and recommended sampling of a model folder.
#pragma once

#include <string>
#include <vector>

#include "linnet/status.h"
#include "model/config.h"
#include "weights/config_json.h"
#include "weights/model_file.h"

namespace linnet {

// The union of the end tokens in config.json, generation_config.json and, by name, tokenizer_config.json; recommendations of
// generation_config.json. The latter two files are optional: one that cannot be read is a warning. Errors (kCorrupt): an end
// token outside of the vocabulary, a recommendation out of bounds.
Result<GenerationDefaults> read_generation(const std::string& folder, const ConfigJson& json, const ModelConfig& config,
                                           std::vector<std::string>& warnings);

}  // namespace linnet
