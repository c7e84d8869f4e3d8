#include "weights/model_summary.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "weights/config_json.h"
#include "weights/folder_model.h"
#include "weights/gguf_model.h"
#include "weights/safetensors_shards.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

TensorSummary summary_of(const NamedTensor& named) {
  const Tensor& tensor = named.tensor;
  TensorSummary summary{.name = named.name, .format = {}, .shape = {tensor.rows, tensor.cols}, .bytes = tensor.data.size()};
  if (!tensor.affine) {
    summary.format = dtype_name(tensor.dtype);
    return summary;
  }
  summary.format = "affine " + std::to_string(tensor.affine->bits) + "-bit, groups of " + std::to_string(tensor.affine->group);
  summary.bytes += tensor.affine->scales.size() + tensor.affine->biases.size();
  return summary;
}

// The files' own words, of a model that cannot be run here.
Status list_gguf(const std::string& path, ModelSummary& summary) {
  LINNET_ASSIGN(const std::vector<GgufFile> files, open_gguf_files(path));
  summary.files = static_cast<std::int32_t>(files.size());
  summary.name = fs::path(path).stem().string();
  LINNET_ASSIGN(const GgufValue* architecture, files[0].require("general.architecture"));
  LINNET_ASSIGN(summary.architecture, architecture->as_string());
  for (const GgufFile& file : files) {
    for (const GgufTensor& tensor : file.tensors()) {
      TensorSummary line{.name = std::string(tensor.name),
                         .format = gguf_tensor_type_text(tensor.gguf_type),
                         .shape = {tensor.dims.begin(), tensor.dims.begin() + tensor.rank},
                         .bytes = tensor.data.size()};
      std::reverse(line.shape.begin(), line.shape.end());
      summary.tensors.push_back(std::move(line));
    }
  }
  return {};
}

Status list_folder(const std::string& path, ModelSummary& summary) {
  LINNET_ASSIGN(const SafetensorsShards shards, open_safetensors_shards(path));
  summary.files = static_cast<std::int32_t>(shards.files.size());
  summary.name = folder_name(path);
  LINNET_ASSIGN(const ConfigJson config, ConfigJson::open((fs::path(path) / "config.json").string()));
  LINNET_ASSIGN(const std::optional<std::string> architecture, config.string("model_type"));
  summary.architecture = architecture.value_or("");
  for (const SafetensorsFile& file : shards.files) {
    for (const SafetensorsTensor& tensor : file.tensors()) {
      summary.tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.data.size()});
    }
  }
  return {};
}

void count_formats(ModelSummary& summary) {
  std::map<std::string, FormatSummary> formats;
  for (const TensorSummary& tensor : summary.tensors) {
    FormatSummary& format = formats[tensor.format];
    format.format = tensor.format;
    format.tensors += 1;
    format.bytes += tensor.bytes;
  }
  for (auto& [name, format] : formats) summary.formats.push_back(std::move(format));
  std::stable_sort(summary.formats.begin(), summary.formats.end(),
                   [](const FormatSummary& a, const FormatSummary& b) { return a.bytes > b.bytes; });
}

}  // namespace

Result<ModelSummary> summarize_model(const std::string& path) {
  ModelSummary summary{.path = path};
  const Result<std::unique_ptr<ModelFile>> model = open_model_file(path);
  if (!model.ok() && model.error().code != ErrorCode::kUnsupported) return model.error();
  if (model.ok()) {
    const ModelFile& file = **model;
    summary.name = file.name();
    summary.architecture = file.config().architecture;
    summary.files = file.files();
    summary.config = file.config();
    summary.generation = file.generation();
    summary.chat_template = !file.chat_template().empty();
    summary.warnings.assign(file.warnings().begin(), file.warnings().end());
    for (const NamedTensor& tensor : file.tensors()) {
      summary.tensors.push_back(summary_of(tensor));
      summary.parameters += tensor.tensor.rows * tensor.tensor.cols;
    }
  } else {
    summary.unsupported = model.error().message;
    std::error_code failed;
    LINNET_RETURN_IF_ERROR(fs::is_directory(path, failed) ? list_folder(path, summary) : list_gguf(path, summary));
    std::sort(summary.tensors.begin(), summary.tensors.end(),
              [](const TensorSummary& a, const TensorSummary& b) { return a.name < b.name; });
  }
  count_formats(summary);
  return summary;
}

}  // namespace linnet
