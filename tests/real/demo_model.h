// The demo model that `make test` has fetched; tests fail loudly without it.
#pragma once

#include <memory>

#include "backends/cpu/executor.h"
#include "text/tokenizer.h"
#include "weights/model_file.h"

namespace linnet {

// $LINNET_DEMO_MODEL, or where `linnet get demo` puts it.
std::string demo_model_path();
Tokenizer load_demo_tokenizer();
std::unique_ptr<cpu::CpuExecutor> load_demo_executor(int threads, std::string_view kernels = {});

}  // namespace linnet
