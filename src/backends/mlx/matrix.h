// Weights as MLX computes with them, made from a file's tensors.
#pragma once

#include <mlx/mlx.h>

#include <cstdint>
#include <optional>

#include "weights/tensor.h"

namespace linnet::mlx_backend {

namespace mx = mlx::core;

struct Matrix {
  mx::array weight = mx::array(0.0F);  // [out, in]; with scales: affine codes in 32-bit words, [out, in * bits / 32]
  std::optional<mx::array> scales;     // [out, in / group]
  std::optional<mx::array> biases;     // as scales
  std::int32_t bits = 0;
  std::int32_t group = 0;
  std::optional<mx::array> bias;  // [out]: added to products

  std::size_t bytes() const;
  mx::Dtype number_type() const { return scales ? scales->dtype() : weight.dtype(); }
};

// All arrays below are evaluated copies: nothing of the tensor is used afterwards.

// The numbers of a plain tensor in their own type: a vector for a tensor of one row of rank 1, which a file calls [1, cols].
mx::array make_vector(const Tensor& tensor);
// A matrix of plain numbers or of affine groups, unchanged.
Matrix make_matrix(const Tensor& tensor);

// A matrix of GGUF's blocks.
//   Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K become affine groups of 32 (weights/block_groups.h) with scales in `type`, or in
//   float32 where `type` would round them.
//   Q6_K, whose groups of 16 MLX does not have, becomes plain numbers in `type`.
//   Plain numbers are converted to `type`.
Matrix make_gguf_matrix(const Tensor& tensor, mx::Dtype type);
// A vector in `type`.
mx::array make_gguf_vector(const Tensor& tensor, mx::Dtype type);

mx::Dtype mlx_type(DType dtype);  // of plain numbers
// Bytes that make_gguf_matrix() or make_matrix() takes at most.
std::size_t matrix_bytes_max(const Tensor& tensor);

}  // namespace linnet::mlx_backend
