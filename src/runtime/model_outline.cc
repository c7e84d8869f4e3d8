#include "runtime/model_outline.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "backends/cpu/memory_sheet.h"
#include "runtime/backend_choice.h"

namespace linnet {
namespace {

constexpr std::int32_t kLeastContext = 4096;
constexpr std::uint64_t kAnyBudget = std::uint64_t{1} << 50;
constexpr double kMlxBytesPerFileByte = 1.2;

Result<std::uint64_t> least_bytes_on_cpu(const ModelFile& file, const LoadOptions& options) {
  LINNET_ASSIGN(const cpu::MemorySheet sheet, cpu::plan_memory(file, {.threads = options.threads,
                                                                      .context = options.context,
                                                                      .rows_max = options.engine.max_rows,
                                                                      .memory_budget_bytes = kAnyBudget}));
  const std::int32_t context = options.context != 0 ? options.context : std::min(file.config().context_max, kLeastContext);
  return sheet.total() - sheet.kv() + sheet.kv_of(context);
}

std::uint64_t file_bytes(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return std::filesystem::file_size(path, ignored);
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    if (entry.path().extension() == ".safetensors") bytes += entry.file_size(ignored);
  }
  return bytes;
}

}  // namespace

std::string model_id(const ModelFile& file, const LoadOptions& options) {
  return file.gguf() != nullptr ? std::filesystem::path(options.model).stem().string() : file.name();
}

Result<ModelOutline> outline_model(const LoadOptions& options) {
  LINNET_ASSIGN(const BackendKind backend, choose_backend(options));
  LINNET_ASSIGN(const std::unique_ptr<ModelFile> file, open_model_file(options.model));
  ModelOutline outline{.id = model_id(*file, options)};
  if (backend == BackendKind::kMlx) {
    outline.least_bytes = static_cast<std::uint64_t>(kMlxBytesPerFileByte * static_cast<double>(file_bytes(options.model)));
  } else {
    LINNET_ASSIGN(outline.least_bytes, least_bytes_on_cpu(*file, options));
  }
  return outline;
}

}  // namespace linnet
