// A model file to a running engine: what TextEngine::load does, for a process that has several.
#pragma once

#include <memory>

#include "backends/cpu/pool.h"
#include "linnet/options.h"
#include "linnet/status.h"
#include "linnet/text_engine.h"

namespace linnet {

// The kernel threads of a process, for all models that it loads with these options. Null where no kernels of ours run. Errors:
// kInvalidArgument (an option, or a device that the backend has not).
Result<std::unique_ptr<cpu::Pool>> make_kernel_pool(const LoadOptions& options);

// TextEngine::load() on kernel threads that other engines may share; `pool` outlives the engine. Null: it makes its own.
Result<std::unique_ptr<TextEngine>> load_model(const LoadOptions& options, cpu::Pool* pool);

}  // namespace linnet
