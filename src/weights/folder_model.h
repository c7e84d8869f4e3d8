// A model folder of Hugging Face or MLX as ModelParts.
#pragma once

#include <string>

#include "linnet/status.h"
#include "weights/model_file.h"

namespace linnet {

// What a folder is called: its own name, or "org/name" for a snapshot in a Hugging Face cache
// (models--org--name/snapshots/<revision>).
std::string folder_name(const std::string& folder);

// Errors: as open_model_file().
Result<ModelParts> read_folder_model(const std::string& folder);

}  // namespace linnet
