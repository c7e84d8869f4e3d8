// Which MLX this process runs with.
#pragma once

#include <string>

#include "linnet/status.h"

namespace linnet::mlx_backend {

// Of the library that was loaded, "0.32.4".
std::string loaded_version();

// The backend is built against one MLX and may be run beside another's library (the CPU wheel's, or the CUDA wheel's of the same
// version). Error (kUnsupported): the versions differ; names both.
Status check_version();

}  // namespace linnet::mlx_backend
