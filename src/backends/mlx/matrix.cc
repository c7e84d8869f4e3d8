#include "backends/mlx/matrix.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "weights/block_groups.h"
#include "weights/dequantize.h"

namespace linnet::mlx_backend {
namespace {

constexpr mx::Device::DeviceType kHost = mx::Device::cpu;

mx::ShapeElem extent(std::int64_t size) {
  CHECK(size >= 0 && size <= INT32_MAX);
  return static_cast<mx::ShapeElem>(size);
}

// An array of MLX's own memory, filled by `fill(bytes)`.
template <class Fill>
mx::array filled(mx::Shape shape, mx::Dtype type, Fill fill) {
  std::size_t elements = 1;
  for (const mx::ShapeElem size : shape) elements *= static_cast<std::size_t>(size);
  mx::allocator::Data data = mx::allocator::malloc(elements * mx::size_of(type));
  fill(static_cast<std::byte*>(data.buffer().raw_ptr()));
  return mx::array(std::move(data), std::move(shape), type);
}

mx::array copied(std::span<const std::byte> bytes, mx::Shape shape, mx::Dtype type) {
  mx::array array = filled(std::move(shape), type, [&](std::byte* to) { std::memcpy(to, bytes.data(), bytes.size()); });
  CHECK(array.nbytes() == bytes.size());
  return array;
}

mx::array converted(const mx::array& array, mx::Dtype type) {
  if (array.dtype() == type) return array;
  mx::array result = mx::astype(array, type, kHost);
  result.eval();
  return result;
}

// Codes become one stream of bits, lowest first, from `stream` on, which is zeroed.
void pack(const BlockGroup& group, std::int32_t bits, std::byte* stream) {
  std::uint32_t pending = 0;
  std::int32_t pending_bits = 0;
  for (const std::uint8_t code : group.codes) {
    pending |= static_cast<std::uint32_t>(code) << pending_bits;
    for (pending_bits += bits; pending_bits >= 8; pending_bits -= 8) {
      *stream++ = static_cast<std::byte>(pending & 0xFFU);
      pending >>= 8U;
    }
  }
}

// The type of `rows * groups` scales, as MLX keeps them: halves unless that would round them.
mx::Dtype scale_type(DType dtype, mx::Dtype type) {
  const bool halves = dtype != DType::kQ4_K && dtype != DType::kQ5_K;
  return halves && type != mx::float32 ? mx::float16 : mx::float32;
}

Matrix make_groups(const Tensor& tensor, std::int32_t bits, mx::Dtype type) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  const std::int64_t groups = tensor.cols / kBlockGroup;
  const std::int64_t group_bytes = kBlockGroup * bits / 8;
  const auto blocks = static_cast<std::int64_t>(tensor.data.size()) / info.block_bytes;
  const std::int64_t per_block = info.block_elements / kBlockGroup;
  const mx::Shape shape{extent(tensor.rows), extent(groups)};
  const auto count = static_cast<std::size_t>(tensor.rows * groups);
  std::vector<float> scales(count);
  std::vector<float> biases(count);
  mx::array codes = filled({shape[0], extent(tensor.cols * bits / 32)}, mx::uint32, [&](std::byte* to) {
    std::array<BlockGroup, 8> read;
    for (std::int64_t block = 0; block < blocks; ++block) {
      read_block_groups(tensor.dtype, tensor.data.data() + block * info.block_bytes, read.data());
      for (std::int64_t i = 0; i < per_block; ++i) {
        const std::int64_t at = block * per_block + i;
        const BlockGroup& group = read[static_cast<std::size_t>(i)];
        pack(group, bits, to + at * group_bytes);
        scales[static_cast<std::size_t>(at)] = group.scale;
        biases[static_cast<std::size_t>(at)] = group.bias;
      }
    }
  });
  const auto numbers = [&](const std::vector<float>& values) {
    return converted(copied(std::as_bytes(std::span(values)), shape, mx::float32), scale_type(tensor.dtype, type));
  };
  Matrix matrix;
  matrix.weight = std::move(codes);
  matrix.scales = numbers(scales);
  matrix.biases = numbers(biases);
  matrix.bits = bits;
  matrix.group = kBlockGroup;
  return matrix;
}

}  // namespace

std::size_t Matrix::bytes() const {
  return weight.nbytes() + (scales ? scales->nbytes() : 0) + (biases ? biases->nbytes() : 0) + (bias ? bias->nbytes() : 0);
}

mx::Dtype mlx_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return mx::float32;
    case DType::kF16:
      return mx::float16;
    case DType::kBF16:
      return mx::bfloat16;
    default:
      CHECK_MSG(false, "not plain numbers");
  }
}

mx::array make_vector(const Tensor& tensor) {
  CHECK(tensor.rows == 1 && !tensor.affine);
  return copied(tensor.data, {extent(tensor.cols)}, mlx_type(tensor.dtype));
}

mx::array make_gguf_vector(const Tensor& tensor, mx::Dtype type) { return converted(make_vector(tensor), type); }

Matrix make_matrix(const Tensor& tensor) {
  Matrix matrix;
  if (!tensor.affine) {
    matrix.weight = copied(tensor.data, {extent(tensor.rows), extent(tensor.cols)}, mlx_type(tensor.dtype));
    return matrix;
  }
  const AffineGroups& affine = *tensor.affine;
  const mx::Shape shape{extent(tensor.rows), extent(tensor.cols / affine.group)};
  matrix.weight = copied(tensor.data, {shape[0], extent(tensor.cols * affine.bits / 32)}, mx::uint32);
  matrix.scales = copied(affine.scales, shape, mlx_type(affine.type));
  matrix.biases = copied(affine.biases, shape, mlx_type(affine.type));
  matrix.bits = affine.bits;
  matrix.group = affine.group;
  return matrix;
}

Matrix make_gguf_matrix(const Tensor& tensor, mx::Dtype type) {
  CHECK(!tensor.affine);
  if (const std::optional<std::int32_t> bits = block_group_bits(tensor.dtype)) return make_groups(tensor, *bits, type);
  Matrix matrix;
  if (dtype_info(tensor.dtype).block_elements == 1) {
    matrix = make_matrix(tensor);
    matrix.weight = converted(matrix.weight, type);
    return matrix;
  }
  const mx::array numbers = filled({extent(tensor.rows), extent(tensor.cols)}, mx::float32, [&](std::byte* to) {
    for (std::int64_t row = 0; row < tensor.rows; ++row)
      dequantize_row(tensor.dtype, tensor.row(row), tensor.cols, reinterpret_cast<float*>(to) + row * tensor.cols);
  });
  matrix.weight = converted(numbers, type);
  return matrix;
}

std::size_t matrix_bytes_max(const Tensor& tensor) {
  const auto elements = static_cast<std::size_t>(tensor.rows * tensor.cols);
  if (tensor.affine) return tensor.data.size() + tensor.affine->scales.size() + tensor.affine->biases.size();
  if (const std::optional<std::int32_t> bits = block_group_bits(tensor.dtype))
    return elements * static_cast<std::size_t>(*bits) / 8 + elements / kBlockGroup * 2 * sizeof(float);
  return elements * sizeof(float);
}

}  // namespace linnet::mlx_backend
