#include "weights/model_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "weights/gguf_config.h"
#include "weights/gguf_names.h"
#include "weights/gguf_vocabulary.h"
#include "weights/quote.h"

namespace linnet {
namespace {

constexpr std::int64_t kControlToken = 3;  // of GgufVocabulary::types

// Control tokens that end a turn or a text, for the many files that name only one of them as eos.
constexpr std::array<std::string_view, 9> kEndNames = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|end_of_text|>", "<|endoftext|>", "<end_of_turn>", "<|eot|>", "</s>",
};

Status check_single_file(const GgufFile& gguf) {
  const GgufValue* split = gguf.find("split.count");
  if (split == nullptr) return {};
  LINNET_ASSIGN(const std::int64_t count, split->as_int());
  if (count <= 1) return {};
  return split->error(
      ErrorCode::kUnsupported,
      "is " + std::to_string(count) + ": the model is split over several files, which is not supported; merge them into one");
}

// A tensor that nothing reads would be left out of the arithmetic without a word.
Status check_tensors(const GgufFile& gguf, const ModelConfig& config) {
  for (const GgufTensor& tensor : gguf.tensors()) {
    const std::string_view name = tensor.name;
    // The first is part of the configuration, the second follows from it and is in old files only.
    if (name == "rope_freqs.weight" || (name.starts_with("blk.") && name.ends_with(".attn_rot_embd.weight"))) continue;
    const std::optional<GgufTensorRole> role = gguf_tensor_role(name);
    // Linear layers read their biases; norms have none here.
    const bool read = role && (!role->bias || !role->hugging_face_name.ends_with("norm.bias"));
    if (read && role->layer.value_or(0) < config.layers) continue;
    return gguf.error(ErrorCode::kUnsupported, "tensor " + quote(name) + " has no place in a model of architecture " +
                                                   config.architecture + " with " + std::to_string(config.layers) + " layers");
  }
  return {};
}

std::vector<TokenId> end_tokens(const GgufVocabulary& vocabulary) {
  std::vector<TokenId> ends;
  for (const std::optional<TokenId>& id : {vocabulary.eos, vocabulary.eot, vocabulary.eom}) {
    if (id) ends.push_back(*id);
  }
  if (vocabulary.types) {
    std::int32_t id = 0;
    for (const std::string_view token : vocabulary.tokens) {
      const bool control = (*vocabulary.types)[static_cast<std::size_t>(id)] == kControlToken;
      if (control && std::find(kEndNames.begin(), kEndNames.end(), token) != kEndNames.end())
        ends.push_back(static_cast<TokenId>(id));
      ++id;
    }
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return ends;
}

// A recommendation outside of what sampling takes is an error: used or dropped silently, it would change answers.
Result<std::optional<float>> recommended(const GgufFile& gguf, std::string_view key, double min, double max) {
  const GgufValue* value = gguf.find(key);
  if (value == nullptr) return std::optional<float>();
  LINNET_ASSIGN(const double number, value->as_float());
  if (!(number >= min && number <= max)) {
    return value->error(ErrorCode::kCorrupt, "is " + std::to_string(number) + "; " + std::to_string(min) + " to " +
                                                 std::to_string(max) + " are allowed");
  }
  return std::optional<float>(static_cast<float>(number));
}

Result<SamplingOverrides> recommended_sampling(const GgufFile& gguf) {
  SamplingOverrides sampling;
  LINNET_ASSIGN(sampling.temperature, recommended(gguf, "general.sampling.temp", 0, 100));
  LINNET_ASSIGN(sampling.top_p, recommended(gguf, "general.sampling.top_p", 1e-6, 1));
  LINNET_ASSIGN(sampling.min_p, recommended(gguf, "general.sampling.min_p", 0, 1 - 1e-6));
  if (const GgufValue* value = gguf.find("general.sampling.top_k")) {
    LINNET_ASSIGN(const std::int64_t top_k, value->as_int());
    // Files say "off" with 0 or less.
    sampling.top_k = static_cast<std::int32_t>(std::clamp<std::int64_t>(top_k, 0, ConfigLimits::kVocabularyMax));
  }
  return sampling;
}

// A string, or nothing; empty if the key is absent.
Result<std::string_view> optional_string(const GgufFile& gguf, std::string_view key) {
  const GgufValue* value = gguf.find(key);
  if (value == nullptr) return std::string_view();
  return value->as_string();
}

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  std::string text("[");
  text += std::to_string(rows);
  text += ", ";
  text += std::to_string(cols);
  text += "]";
  return text;
}

}  // namespace

Result<Tensor> ModelFile::find(std::string_view name) const {
  const std::optional<std::string> gguf_name = gguf_tensor_name(name);
  const GgufTensor* tensor = gguf_name ? gguf_.find_tensor(*gguf_name) : nullptr;
  if (tensor == nullptr) {
    std::string what = "tensor " + quote(name);
    if (gguf_name) what += ", " + quote(*gguf_name) + " in the file,";
    return gguf_.error(ErrorCode::kCorrupt, what + " is missing");
  }
  return gguf_.matrix(*tensor);
}

Result<Tensor> ModelFile::require(std::string_view name, std::int64_t rows, std::int64_t cols) const {
  LINNET_ASSIGN(const Tensor tensor, find(name));
  if (tensor.rows == rows && tensor.cols == cols) return tensor;
  return gguf_.error(ErrorCode::kCorrupt, "tensor " + quote(name) + " is " + shape_text(tensor.rows, tensor.cols) + "; " +
                                              shape_text(rows, cols) + " is wanted");
}

Result<std::optional<Tensor>> ModelFile::optional(std::string_view name, std::int64_t rows, std::int64_t cols) const {
  const std::optional<std::string> gguf_name = gguf_tensor_name(name);
  if (!gguf_name || gguf_.find_tensor(*gguf_name) == nullptr) return std::optional<Tensor>();
  LINNET_ASSIGN(const Tensor tensor, require(name, rows, cols));
  return std::optional<Tensor>(tensor);
}

Result<std::unique_ptr<ModelFile>> open_gguf_model(GgufFile gguf) {
  LINNET_RETURN_IF_ERROR(check_single_file(gguf));
  std::unique_ptr<ModelFile> file(new ModelFile(std::move(gguf)));
  LINNET_ASSIGN(file->config_, read_gguf_config(file->gguf_));
  LINNET_RETURN_IF_ERROR(check_tensors(file->gguf_, file->config_));
  LINNET_ASSIGN(file->generation_.sampling, recommended_sampling(file->gguf_));
  if (file->gguf_.find("tokenizer.ggml.tokens") != nullptr) {
    LINNET_ASSIGN(const GgufVocabulary vocabulary, read_gguf_vocabulary(file->gguf_));
    file->generation_.end_tokens = end_tokens(vocabulary);
  }
  LINNET_ASSIGN(file->chat_template_, optional_string(file->gguf_, "tokenizer.chat_template"));
  LINNET_ASSIGN(const std::string_view name, optional_string(file->gguf_, "general.name"));
  file->name_ = name.empty() ? std::filesystem::path(file->path()).stem().string() : std::string(name);
  return file;
}

Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path) {
  std::error_code failure;
  if (std::filesystem::is_directory(path, failure)) {
    return Error{ErrorCode::kUnsupported, path + ": model folders are not supported; give the path of a .gguf file", path};
  }
  LINNET_ASSIGN(GgufFile gguf, GgufFile::open(path));
  return open_gguf_model(std::move(gguf));
}

}  // namespace linnet
