#include "weights/folder_model.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "weights/config_json.h"
#include "weights/folder_config.h"
#include "weights/folder_quantization.h"
#include "weights/generation_config.h"
#include "weights/quote.h"
#include "weights/safetensors_shards.h"
#include "weights/tensor_places.h"
#include "weights/text_folder.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

// Where models that also see or hear keep their language model's tensors, and what those are called without it.
struct Prefix {
  std::string_view in_file;
  std::string_view name;
};
constexpr std::array kPrefixes = {Prefix{"model.language_model.", "model."}, Prefix{"language_model.", ""}};
// The other parts of such models, which text does not pass through.
constexpr std::array<std::string_view, 6> kOtherParts = {
    "vision_tower.",       "multi_modal_projector.",       "vision_model.",
    "model.vision_tower.", "model.multi_modal_projector.", "model.vision_model."};

constexpr std::string_view kWeight = ".weight";

std::optional<DType> plain_dtype(std::string_view dtype) {
  if (dtype == "F32") return DType::kF32;
  if (dtype == "F16") return DType::kF16;
  if (dtype == "BF16") return DType::kBF16;
  return std::nullopt;
}

class FolderReader {
 public:
  FolderReader(const ConfigJson& json, const FolderQuantization& quantization, const ModelConfig& config)
      : json_(json), quantization_(quantization), config_(config), places_(config) {}

  Status add(const SafetensorsFile& file) {
    for (const SafetensorsTensor& tensor : file.tensors()) {
      const std::string name = name_of(tensor.name);
      if (ignored(tensor.name, name)) continue;
      if (!tensors_.emplace(name, Place{&file, &tensor}).second) {
        return file.error(ErrorCode::kCorrupt, "tensor " + quote(tensor.name) + " is there under another name too");
      }
    }
    return {};
  }

  Status read(ModelParts& parts) {
    for (const auto& [name, place] : tensors_) {
      if (is_scale(name)) continue;
      if (places_.find(name) == nullptr) return no_place(place);
      LINNET_ASSIGN(const Tensor tensor, matrix(name, place));
      parts.tensors.push_back({name, tensor});
    }
    return places_.check(parts);
  }

 private:
  struct Place {
    const SafetensorsFile* file;
    const SafetensorsTensor* tensor;
  };

  std::string name_of(std::string_view name) const {
    for (const Prefix& prefix : kPrefixes) {
      if (json_.nested() && name.starts_with(prefix.in_file)) {
        return std::string(prefix.name) + std::string(name.substr(prefix.in_file.size()));
      }
    }
    return std::string(name);
  }

  // Tensors that no arithmetic here would use: parts that are no language, frequencies that follow from the configuration, and
  // the head of a model whose head is its embedding.
  bool ignored(std::string_view in_file, std::string_view name) const {
    for (const std::string_view part : kOtherParts) {
      if (json_.nested() && in_file.starts_with(part)) return true;
    }
    if (name.ends_with("self_attn.rotary_emb.inv_freq")) return true;
    return config_.tied_embeddings && name.starts_with("lm_head.");
  }

  // Scales and biases of a quantized weight are read with it.
  bool is_scale(std::string_view name) const {
    for (const std::string_view suffix : {".scales", ".biases"}) {
      if (!name.ends_with(suffix)) continue;
      const auto weight = tensors_.find(std::string(name.substr(0, name.size() - suffix.size())) + std::string(kWeight));
      return weight != tensors_.end() && weight->second.tensor->dtype == "U32";
    }
    return false;
  }

  Error no_place(const Place& place) const {
    return place.file->error(ErrorCode::kUnsupported, "tensor " + quote(place.tensor->name) + " " + places_.no_place());
  }

  Result<Tensor> matrix(const std::string& name, const Place& place) const {
    const SafetensorsTensor& tensor = *place.tensor;
    const std::string_view module = std::string_view(name).substr(0, name.rfind('.'));
    if (tensor.shape.size() != 1 && tensor.shape.size() != 2) {
      return place.file->error(ErrorCode::kCorrupt, tensor_text(tensor) + " is neither a matrix nor a vector");
    }
    const std::optional<NamedFormat> named = named_format(module, tensor.name);
    if (tensor.dtype == "U32") return affine(std::string(module), place, named);
    const std::optional<DType> dtype = plain_dtype(tensor.dtype);
    if (!dtype) {
      return place.file->error(
          ErrorCode::kUnsupported,
          tensor_text(tensor) + " is of no supported type; supported are F32, F16, BF16 and mlx-lm's affine");
    }
    if (named && named->quantized && name.ends_with(kWeight)) {
      return place.file->error(ErrorCode::kCorrupt, tensor_text(tensor) + " is not quantized, and config.json says that it is");
    }
    const bool vector = tensor.shape.size() == 1;
    return Tensor{.dtype = *dtype, .rows = vector ? 1 : tensor.shape[0], .cols = tensor.shape.back(), .data = tensor.data};
  }

  // The configuration may name modules with the file's prefix or without it.
  std::optional<NamedFormat> named_format(std::string_view module, std::string_view in_file) const {
    const std::optional<NamedFormat> named = quantization_.named(in_file.substr(0, in_file.rfind('.')));
    if (named) return named;
    if (json_.nested()) {
      if (const auto prefixed = quantization_.named("language_model." + std::string(module))) return prefixed;
    }
    return quantization_.named(module);
  }

  // Codes packed into 32-bit words, with scales and biases beside them. Their shapes and the model's give bits and group.
  Result<Tensor> affine(const std::string& module, const Place& place, const std::optional<NamedFormat>& named) const {
    const SafetensorsTensor& codes = *place.tensor;
    const SafetensorsFile& file = *place.file;
    if (!quantization_.present() || (named && !named->quantized)) {
      return file.error(ErrorCode::kCorrupt, tensor_text(codes) + " is quantized, and config.json says that it is not");
    }
    const std::int64_t cols = places_.find(module + std::string(kWeight))->cols;
    LINNET_ASSIGN(const SafetensorsTensor* scales, beside(module + ".scales", place));
    LINNET_ASSIGN(const SafetensorsTensor* biases, beside(module + ".biases", place));
    const std::optional<DType> type = plain_dtype(scales->dtype);
    const std::string text = tensor_text(codes) + " with " + tensor_text(*scales) + " and " + tensor_text(*biases);
    if (!type || scales->dtype != biases->dtype) {
      return file.error(ErrorCode::kUnsupported, text + ": scales and biases must be F32, F16 or BF16, both the same");
    }
    const bool shapes = codes.shape.size() == 2 && scales->shape.size() == 2 && scales->shape == biases->shape &&
                        scales->shape[0] == codes.shape[0] && scales->shape[1] > 0 && codes.shape[1] <= cols;
    const std::int64_t bits = shapes ? codes.shape[1] * 32 / cols : 0;
    const std::int64_t group = shapes ? cols / scales->shape[1] : 0;
    if (!shapes || codes.shape[1] * 32 != bits * cols || group * scales->shape[1] != cols) {
      return file.error(ErrorCode::kCorrupt, text + ": they do not make a matrix of " + std::to_string(cols) + " columns");
    }
    const std::string made = std::to_string(bits) + " bits in groups of " + std::to_string(group);
    if (!affine_bits_known(bits) || !affine_group_known(group)) {
      return file.error(ErrorCode::kUnsupported,
                        text + ": " + made + "; 2, 3, 4, 5, 6 and 8 bits in groups of 32, 64 and 128 are known");
    }
    if (named && (named->bits != bits || named->group != group)) {
      return file.error(ErrorCode::kCorrupt, text + ": " + made + ", and config.json says " + std::to_string(named->bits) +
                                                 " bits in groups of " + std::to_string(named->group));
    }
    return Tensor{.rows = codes.shape[0],
                  .cols = cols,
                  .data = codes.data,
                  .affine = AffineGroups{.bits = static_cast<std::int32_t>(bits),
                                         .group = static_cast<std::int32_t>(group),
                                         .type = *type,
                                         .scales = scales->data,
                                         .biases = biases->data}};
  }

  Result<const SafetensorsTensor*> beside(const std::string& name, const Place& place) const {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) return found->second.tensor;
    return place.file->error(ErrorCode::kCorrupt, "tensor " + quote(name) + " is missing beside " + tensor_text(*place.tensor));
  }

  const ConfigJson& json_;
  const FolderQuantization& quantization_;
  const ModelConfig& config_;
  TensorPlaces places_;
  std::unordered_map<std::string, Place> tensors_;  // by Hugging Face's name
};

}  // namespace

std::string folder_name(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  const fs::path own = path.has_filename() ? path : path.parent_path();
  const std::string repository = own.parent_path().parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--";
  if (own.parent_path().filename() != "snapshots" || !repository.starts_with(kPrefix)) return own.filename().string();
  std::string name = repository.substr(kPrefix.size());
  const std::size_t separator = name.find("--");
  if (separator != std::string::npos) name.replace(separator, 2, "/");
  return name;
}

Result<ModelParts> read_folder_model(const std::string& folder) {
  ModelParts parts{.path = folder, .name = folder_name(folder)};
  LINNET_ASSIGN(const ConfigJson json, ConfigJson::open((fs::path(folder) / "config.json").string()));
  LINNET_ASSIGN(parts.config, read_folder_config(json));
  LINNET_ASSIGN(const FolderQuantization quantization, FolderQuantization::read(json));
  LINNET_ASSIGN(SafetensorsShards shards, open_safetensors_shards(folder));
  parts.warnings = std::move(shards.warnings);
  LINNET_ASSIGN(parts.generation, read_generation(folder, json, parts.config, parts.warnings));
  LINNET_ASSIGN(parts.chat_template, read_chat_template(folder));
  FolderReader reader(json, quantization, parts.config);
  for (const SafetensorsFile& file : shards.files) LINNET_RETURN_IF_ERROR(reader.add(file));
  LINNET_RETURN_IF_ERROR(reader.read(parts));
  for (SafetensorsFile& file : shards.files) {
    for (MappedFile& mapping : file.take_mapping()) parts.safetensors.push_back(std::move(mapping));
  }
  return parts;
}

}  // namespace linnet
