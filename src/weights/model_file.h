// A model as its loader sees it, whatever kind of file it lies in: configuration, tensors by name, and what goes with them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "linnet/ids.h"
#include "linnet/sampling.h"
#include "linnet/status.h"
#include "model/config.h"
#include "weights/gguf.h"
#include "weights/tensor.h"

namespace linnet {

// What the file's maker recommends for generating.
struct GenerationDefaults {
  std::vector<TokenId> end_tokens;  // ascending; any of them ends an answer
  SamplingOverrides sampling;
};

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// What readers of model files make.
struct ModelParts {
  std::string path;  // a .gguf file or a folder
  std::string name;
  ModelConfig config;
  GenerationDefaults generation;
  std::string chat_template;
  std::vector<std::string> warnings;
  std::vector<NamedTensor> tensors;     // in any order, no name twice
  std::vector<GgufFile> gguf;           // one, or the parts of a split file, the one with the metadata first; empty: a folder
  std::vector<MappedFile> safetensors;  // a folder's
};

// Immutable; any thread may read it. Tensors have the names that Hugging Face gives them
// ("model.layers.3.self_attn.q_proj.weight", "lm_head.weight", "….bias" where the configuration says so); they are views of the
// mappings and die with this object. Numbers inside tensors are unchecked, and need not be aligned in memory.
class ModelFile {
 public:
  explicit ModelFile(ModelParts parts);

  const ModelConfig& config() const { return parts_.config; }
  const GenerationDefaults& generation() const { return parts_.generation; }
  const std::string& path() const { return parts_.path; }
  // The name that the file gives the model; without one, the file's or folder's own ("org/name" in a Hugging Face cache).
  const std::string& name() const { return parts_.name; }
  // Jinja source; empty if there is none.
  std::string_view chat_template() const { return parts_.chat_template; }
  // The container, for those who read the tokenizer from it; null: a folder, whose tokenizer read_text_folder(path()) reads.
  const GgufFile* gguf() const { return parts_.gguf.empty() ? nullptr : parts_.gguf.data(); }
  // What was passed over, for whoever loads the model to tell.
  std::span<const std::string> warnings() const { return parts_.warnings; }
  // How many hold its weights.
  std::int32_t files() const { return static_cast<std::int32_t>(parts_.gguf.size() + parts_.safetensors.size()); }
  // All of them, by name.
  std::span<const NamedTensor> tensors() const { return parts_.tensors; }

  // Error (kCorrupt): no such tensor. Messages name file and tensor.
  Result<Tensor> find(std::string_view name) const;
  // As find(); another shape than [rows, cols] is kCorrupt, naming both.
  Result<Tensor> require(std::string_view name, std::int64_t rows, std::int64_t cols) const;
  // As require(); empty if there is no such tensor.
  Result<std::optional<Tensor>> optional(std::string_view name, std::int64_t rows, std::int64_t cols) const;

 private:
  const Tensor* lookup(std::string_view name) const;
  Error error(ErrorCode code, std::string_view what) const;

  ModelParts parts_;
};

// A .gguf file (of a split one, its first) or a folder of Hugging Face or MLX: config.json and safetensors files. Reads headers
// and JSON only. Errors: kNotFound, kIo; kUnsupported (an architecture, a format, a tensor that its architecture would not read
// here, a key that changes the arithmetic in a way that is not followed), kCorrupt, kTooLarge.
Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path);

}  // namespace linnet
