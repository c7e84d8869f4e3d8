// Weights from a model file into MLX's arrays: what a model file's bind() asks for.
#pragma once

#include <mlx/mlx.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "backends/mlx/ops.h"
#include "base/memory_budget.h"
#include "linnet/status.h"
#include "weights/model_file.h"

namespace linnet::mlx_backend {

// A folder's numbers are taken as they are. Those of a GGUF file get one type, so that no step converts weights: the embedding's,
// if it is one of 16 bits (the file then answers as the folder that it was made from), else float32, in which blocks are exact.
// A linear layer has a bias if "<name>.bias" lies beside its weight.
class WeightLoader {
 public:
  struct Named {
    std::string name;  // without ".weight"
    std::int64_t rows = 0;
  };

  // Both outlive the loader.
  WeightLoader(const ModelFile& file, MemoryLeft& memory) : file_(&file), memory_(&memory) {}

  Result<Ops::Norm> norm(const std::string& name, std::int64_t size);
  Result<Ops::Linear> linear(const std::string& name, std::int64_t rows, std::int64_t cols);
  Result<Ops::Linears> linears(std::initializer_list<Named> matrices, std::int64_t cols);
  Result<Ops::Embedding> embedding(const std::string& name, std::int64_t rows, std::int64_t cols);
  Result<Ops::Linear> head(const std::string& name, std::int64_t rows, std::int64_t cols);
  Result<Ops::Linear> tied_head(const Ops::Embedding& embedding) {
    bytes_per_token_ += static_cast<double>(embedding.bytes());
    return embedding;
  }

  // The type of activations and of KV: what MLX makes of the numbers it meets, the embedding's and the norms'.
  mx::Dtype activation_type() const { return activation_type_; }
  // Bytes of the matrices that a lone decode row reads, and the weights of the layers' matrices (all but the head).
  double bytes_per_token() const { return bytes_per_token_; }
  double layer_weights() const { return layer_weights_; }

 private:
  Result<Matrix> matrix(const std::string& name, std::int64_t rows, std::int64_t cols);
  Result<mx::array> vector(const Tensor& tensor);

  const ModelFile* file_;
  MemoryLeft* memory_;
  std::optional<mx::Dtype> gguf_type_;  // known from the embedding on, which is asked for first
  mx::Dtype activation_type_ = mx::float16;
  double bytes_per_token_ = 0;
  double layer_weights_ = 0;
};

}  // namespace linnet::mlx_backend
