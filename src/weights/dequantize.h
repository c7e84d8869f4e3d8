// Weights to float32, exactly as GGUF defines its formats: the reference that kernels are measured against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/tensor.h"

namespace linnet {

// One row: `cols` elements, a multiple of the format's block, from tensor_bytes(dtype, 1, cols) bytes at `row` (any alignment) to
// out[0 .. cols). Products and sums are rounded to float32 where the format's definition does so, nowhere else; scales that are
// infinite or NaN give what IEEE 754 says.
void dequantize_row(DType dtype, const std::byte* row, std::int64_t cols, float* out);

}  // namespace linnet
