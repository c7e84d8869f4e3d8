// Where models lie on this machine.
#pragma once

#include <filesystem>

#include "linnet/status.h"

namespace linnet {

// $LINNET_CACHE, else $XDG_CACHE_HOME/linnet, else ~/.cache/linnet. Error (kNotFound): none of these is set.
Result<std::filesystem::path> cache_folder();
// Below it: one folder for each model.
Result<std::filesystem::path> models_folder();

// The cache that Hugging Face's own tools share: $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else hub/ below huggingface_home().
// One folder for each repository, models--org--name/{blobs,refs,snapshots}. Error (kNotFound): none of these is set.
Result<std::filesystem::path> hub_cache_folder();
// $HF_HOME, else $XDG_CACHE_HOME/huggingface, else ~/.cache/huggingface. Holds hub/ and the token file.
Result<std::filesystem::path> huggingface_home();

}  // namespace linnet
