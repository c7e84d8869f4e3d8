#include "weights/model_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "weights/folder_model.h"
#include "weights/gguf_model.h"
#include "weights/gguf_names.h"
#include "weights/quote.h"

namespace linnet {
namespace {

bool before(const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; }

}  // namespace

ModelFile::ModelFile(ModelParts parts) : parts_(std::move(parts)) {
  std::sort(parts_.tensors.begin(), parts_.tensors.end(), before);
  const auto twice = std::adjacent_find(parts_.tensors.begin(), parts_.tensors.end(),
                                        [](const NamedTensor& a, const NamedTensor& b) { return !before(a, b); });
  CHECK(twice == parts_.tensors.end());
}

const Tensor* ModelFile::lookup(std::string_view name) const {
  const auto at = std::lower_bound(parts_.tensors.begin(), parts_.tensors.end(), name,
                                   [](const NamedTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at == parts_.tensors.end() || at->name != name ? nullptr : &at->tensor;
}

Error ModelFile::error(ErrorCode code, std::string_view what) const { return {code, path() + ": " + std::string(what), path()}; }

Result<Tensor> ModelFile::find(std::string_view name) const {
  if (const Tensor* tensor = lookup(name)) return *tensor;
  std::string what = "tensor " + quote(name);
  const std::optional<std::string> gguf_name = gguf() != nullptr ? gguf_tensor_name(name) : std::nullopt;
  if (gguf_name) what += ", " + quote(*gguf_name) + " in the file,";
  return error(ErrorCode::kCorrupt, what + " is missing");
}

Result<Tensor> ModelFile::require(std::string_view name, std::int64_t rows, std::int64_t cols) const {
  LINNET_ASSIGN(const Tensor tensor, find(name));
  if (tensor.rows == rows && tensor.cols == cols) return tensor;
  return error(ErrorCode::kCorrupt, "tensor " + quote(name) + " is " + shape_text(tensor.rows, tensor.cols) + "; " +
                                        shape_text(rows, cols) + " is wanted");
}

Result<std::optional<Tensor>> ModelFile::optional(std::string_view name, std::int64_t rows, std::int64_t cols) const {
  if (lookup(name) == nullptr) return std::optional<Tensor>();
  LINNET_ASSIGN(const Tensor tensor, require(name, rows, cols));
  return std::optional<Tensor>(tensor);
}

Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path) {
  std::error_code failed;
  const bool folder = std::filesystem::is_directory(path, failed);
  LINNET_ASSIGN(ModelParts parts, folder ? read_folder_model(path) : read_gguf_model(path));
  return std::make_unique<ModelFile>(std::move(parts));
}

}  // namespace linnet
