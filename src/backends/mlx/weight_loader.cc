#include "backends/mlx/weight_loader.h"

#include <utility>

#include "base/check.h"

namespace linnet::mlx_backend {

Result<mx::array> WeightLoader::vector(const Tensor& tensor) {
  LINNET_RETURN_IF_ERROR(memory_->take(matrix_bytes_max(tensor), "weights"));
  if (file_->gguf() == nullptr) return make_vector(tensor);
  CHECK(gguf_type_.has_value());
  return make_gguf_vector(tensor, *gguf_type_);
}

Result<Matrix> WeightLoader::matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
  LINNET_ASSIGN(const Tensor tensor, file_->require(name, rows, cols));
  LINNET_RETURN_IF_ERROR(memory_->take(matrix_bytes_max(tensor), "weights"));
  if (file_->gguf() == nullptr) return make_matrix(tensor);
  CHECK(gguf_type_.has_value());
  return make_gguf_matrix(tensor, *gguf_type_);
}

Result<Ops::Norm> WeightLoader::norm(const std::string& name, std::int64_t size) {
  LINNET_ASSIGN(const Tensor tensor, file_->require(name, 1, size));
  LINNET_ASSIGN(mx::array weight, vector(tensor));
  activation_type_ = mx::promote_types(activation_type_, weight.dtype());
  return Ops::Norm{std::move(weight)};
}

Result<Ops::Linear> WeightLoader::linear(const std::string& name, std::int64_t rows, std::int64_t cols) {
  LINNET_ASSIGN(Matrix made, head(name, rows, cols));
  layer_weights_ += static_cast<double>(rows) * static_cast<double>(cols);
  return made;
}

Result<Ops::Linear> WeightLoader::head(const std::string& name, std::int64_t rows, std::int64_t cols) {
  LINNET_ASSIGN(Matrix made, matrix(name + ".weight", rows, cols));
  LINNET_ASSIGN(const std::optional<Tensor> bias, file_->optional(name + ".bias", 1, rows));
  if (bias) {
    LINNET_ASSIGN(made.bias, vector(*bias));
  }
  bytes_per_token_ += static_cast<double>(made.bytes());
  return made;
}

Result<Ops::Linears> WeightLoader::linears(std::initializer_list<Named> matrices, std::int64_t cols) {
  Ops::Linears made;
  for (const Named& named : matrices) {
    LINNET_ASSIGN(Matrix part, linear(named.name, named.rows, cols));
    made.push_back(std::move(part));
  }
  return made;
}

Result<Ops::Embedding> WeightLoader::embedding(const std::string& name, std::int64_t rows, std::int64_t cols) {
  if (file_->gguf() != nullptr) {
    LINNET_ASSIGN(const Tensor tensor, file_->require(name, rows, cols));
    const bool narrow = tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
    gguf_type_ = narrow ? mlx_type(tensor.dtype) : mx::float32;
  }
  LINNET_ASSIGN(Matrix made, matrix(name, rows, cols));
  activation_type_ = made.number_type();
  return made;
}

}  // namespace linnet::mlx_backend
