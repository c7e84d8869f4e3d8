#include "demo_model.h"

#include <cstdlib>

#include "base/check.h"
#include "hub/local_models.h"
#include "runtime/load_vocabulary.h"
#include "weights/gguf.h"

namespace linnet {

std::string demo_model_path() {
  if (const char* path = std::getenv("LINNET_DEMO_MODEL"); path != nullptr) return path;
  const Result<std::string> path = resolve_model("demo");
  CHECK_MSG(path.ok(), "the demo model is missing: run `make test`, or `linnet get demo`");
  return *path;
}

Tokenizer load_demo_tokenizer() {
  const Result<GgufFile> file = GgufFile::open(demo_model_path());
  CHECK_MSG(file.ok(), file.ok() ? "" : file.error().message);
  return Tokenizer::from_vocabulary(load_gguf_vocabulary(*file).value()).value();
}

std::unique_ptr<cpu::CpuExecutor> load_demo_executor(int threads, std::string_view kernels) {
  const Result<std::unique_ptr<ModelFile>> file = open_model_file(demo_model_path());
  CHECK_MSG(file.ok(), file.ok() ? "" : file.error().message);
  const Result<const cpu::KernelSet*> set = cpu::choose_kernel_set(kernels);
  CHECK_MSG(set.ok(), set.ok() ? "" : set.error().message);
  Result<std::unique_ptr<cpu::CpuExecutor>> executor =
      cpu::CpuExecutor::create(**file, {.threads = threads, .kernels = *set, .context = 2048, .rows_max = 32, .tokens_max = 512});
  CHECK_MSG(executor.ok(), executor.ok() ? "" : executor.error().message);
  return *std::move(executor);
}

}  // namespace linnet
