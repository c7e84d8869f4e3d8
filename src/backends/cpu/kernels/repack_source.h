// Where the parts of a block of 32 weights are in the file's formats (GGUF's definitions).
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/panels.h"

namespace linnet::cpu {

// Each block begins with its f16 scale d; affine ones have the f16 bias m next. Codes are nibbles (byte j: columns j and 16 + j),
// with a fifth bit each for Q5 (bit c of a dword: column c), or 32 signed bytes.
struct QuantSource {
  int block_bytes = 0;
  int codes = 0;       // offset
  int fifth_bits = 0;  // offset; Q5 only
  bool affine = false;
};
constexpr QuantSource quant_source(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return {18, 2, 0, false};
    case DType::kQ4_1:
      return {20, 4, 0, true};
    case DType::kQ5_0:
      return {22, 6, 2, false};
    case DType::kQ5_1:
      return {24, 8, 4, true};
    case DType::kQ8_0:
      return {34, 2, 0, false};
    default:
      return {};
  }
}

}  // namespace linnet::cpu
