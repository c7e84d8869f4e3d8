// A model as its loader sees it, whatever kind of file it lies in: configuration, tensors by name, and what goes with them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Immutable; any thread may read it. Tensors have the names that Hugging Face gives them
// ("model.layers.3.self_attn.q_proj.weight", "lm_head.weight"); they are views of the mapping and die with this object. Numbers
// inside tensors are unchecked.
class ModelFile {
 public:
  const ModelConfig& config() const { return config_; }
  const GenerationDefaults& generation() const { return generation_; }
  const std::string& path() const { return gguf_.path(); }
  // The name that the file gives the model; without one, the file's own.
  const std::string& name() const { return name_; }
  // Jinja source; empty if there is none.
  std::string_view chat_template() const { return chat_template_; }
  // The container, for those who read the tokenizer from it; null if the model is not a GGUF file.
  const GgufFile* gguf() const { return &gguf_; }

  // Errors: kCorrupt (no such tensor), kUnsupported (its format). Messages name file and tensor.
  Result<Tensor> find(std::string_view name) const;
  // As find(); another shape than [rows, cols] is kCorrupt, naming both.
  Result<Tensor> require(std::string_view name, std::int64_t rows, std::int64_t cols) const;
  // As require(); empty if there is no such tensor.
  Result<std::optional<Tensor>> optional(std::string_view name, std::int64_t rows, std::int64_t cols) const;

 private:
  friend Result<std::unique_ptr<ModelFile>> open_gguf_model(GgufFile gguf);
  explicit ModelFile(GgufFile gguf) : gguf_(std::move(gguf)) {}

  GgufFile gguf_;
  ModelConfig config_;
  GenerationDefaults generation_;
  std::string name_;
  std::string_view chat_template_;
};

// A .gguf file. Errors: kNotFound, kIo; kUnsupported (a folder, a file that is one of several, an architecture, a tensor that its
// architecture would not read here); kCorrupt.
Result<std::unique_ptr<ModelFile>> open_model_file(const std::string& path);
Result<std::unique_ptr<ModelFile>> open_gguf_model(GgufFile gguf);

}  // namespace linnet
