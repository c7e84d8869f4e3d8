// Which backend runs a model.
#pragma once

#include "linnet/options.h"
#include "linnet/status.h"

namespace linnet {

// Never kAuto: MLX for a GPU, if there is one and nothing asks for the CPU; our own kernels for a CPU. Error: kInvalidArgument
// (the backend has no such device).
Result<BackendKind> choose_backend(const LoadOptions& options);

}  // namespace linnet
