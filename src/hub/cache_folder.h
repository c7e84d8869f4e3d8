// Where models lie on this machine.
#pragma once

#include <filesystem>

#include "linnet/status.h"

namespace linnet {

// $LINNET_CACHE, else $XDG_CACHE_HOME/linnet, else ~/.cache/linnet. Error (kNotFound): none of these is set.
Result<std::filesystem::path> cache_folder();
// Below it: one folder for each model.
Result<std::filesystem::path> models_folder();

}  // namespace linnet
