#include "backends/cpu/kernels/panels.h"

#include <bit>
#include <cstring>
#include <string>

#include "backends/cpu/kernels/kernel_set.h"
#include "base/check.h"
#include "weights/half.h"

namespace linnet::cpu {
namespace {

// Columns: so that 16 rows of any type stay within 32-bit offsets. Rows: panels times their bytes stay far from 64 bits.
constexpr std::int64_t kColsMax = 1 << 24;
constexpr std::int64_t kRowsMax = 1 << 28;

std::string shape_of(std::int64_t rows, std::int64_t cols) {
  std::string text(1, '[');
  text.append(std::to_string(rows)).append(", ").append(std::to_string(cols)).append(1, ']');
  return text;
}

// `count` matrices [rows, cols] side by side.
Result<PanelMatrix> matrix_of(DType dtype, std::int64_t rows, std::int64_t cols, std::int32_t count) {
  LINNET_ASSIGN(const PanelFormat format, panel_format(dtype));
  if (rows <= 0 || cols <= 0 || rows > kRowsMax || cols > kColsMax) {
    return Error{ErrorCode::kTooLarge,
                 "a matrix " + shape_of(rows, cols) + " is beyond the limits, 1 to " + std::to_string(kRowsMax) +
                     " rows and 1 to " + std::to_string(kColsMax) + " columns",
                 {}};
  }
  if (is_quantized(format) && cols % kGroup != 0) {
    return Error{ErrorCode::kUnsupported,
                 "a quantized matrix " + shape_of(rows, cols) + " has a number of columns that is not a multiple of 32",
                 {}};
  }
  PanelMatrix matrix;
  matrix.format = format;
  matrix.rows = count * static_cast<std::int32_t>(rows);
  matrix.cols = static_cast<std::int32_t>(cols);
  matrix.panels = count * panels_of(rows);
  matrix.units = is_quantized(format) ? panel_groups(cols) : matrix.cols;
  matrix.panel_bytes = (static_cast<std::size_t>(matrix.units) * panel_unit_bytes(format) + 63) / 64 * 64;
  return matrix;
}

float half_at(const std::byte* halves, int index) {
  std::uint16_t half;
  std::memcpy(&half, halves + index * 2, 2);
  return half_to_float(half);
}

void dequantize_group(PanelFormat format, const std::byte* group, int lane, float* out) {
  const bool nibbles = is_nibbles(format);
  const std::byte* const scales = group + (nibbles ? 256 : 512);
  const float scale = half_at(scales, lane);
  const float bias = is_affine(format) ? half_at(scales + 32, lane) : 0.0F;
  for (int c = 0; c < kGroup; ++c) {
    const int in_half = nibbles ? c % 16 : c;
    const std::byte byte = group[in_half / 4 * 64 + lane * 4 + in_half % 4];
    int code = static_cast<std::int8_t>(byte);
    if (nibbles) code = (c < 16 ? static_cast<int>(byte) & 15 : static_cast<int>(byte) >> 4) - (is_affine(format) ? 0 : 8);
    const float product = scale * static_cast<float>(code);  // exact
    out[c] = is_affine(format) ? product + bias : product;
  }
}

float dense_at(PanelFormat format, const std::byte* column, int lane) {
  if (format == PanelFormat::kF16) return half_at(column, lane);
  std::uint32_t bits = 0;
  if (format == PanelFormat::kF32) {
    std::memcpy(&bits, column + lane * 4, 4);
  } else {
    std::uint16_t upper;
    std::memcpy(&upper, column + lane * 2, 2);
    bits = static_cast<std::uint32_t>(upper) << 16;
  }
  return std::bit_cast<float>(bits);
}

}  // namespace

Result<PanelFormat> panel_format(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return PanelFormat::kF32;
    case DType::kF16:
      return PanelFormat::kF16;
    case DType::kBF16:
      return PanelFormat::kBF16;
    case DType::kQ4_0:
      return PanelFormat::kNibblesSymmetric;
    case DType::kQ4_1:
      return PanelFormat::kNibblesAffine;
    case DType::kQ5_0:
      return PanelFormat::kBytesSymmetric;
    case DType::kQ5_1:
      return PanelFormat::kBytesAffine;
    case DType::kQ8_0:
      return PanelFormat::kBytesSymmetric;
    default:
      break;
  }
  return Error{ErrorCode::kUnsupported,
               "the CPU kernels do not read weights of type " + std::string(dtype_name(dtype)) +
                   "; they read F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0",
               {}};
}

Result<PanelMatrix> panel_matrix(DType dtype, std::int64_t rows, std::int64_t cols) { return matrix_of(dtype, rows, cols, 1); }

Result<PanelMatrix> panel_matrix_pairs(DType dtype, std::int64_t rows, std::int64_t cols) {
  return matrix_of(dtype, rows, cols, 2);
}

std::size_t panel_matrix_bytes(DType dtype, std::int64_t rows, std::int64_t cols) {
  const auto matrix = panel_matrix(dtype, rows, cols);
  return matrix ? matrix->bytes() : 0;
}

void repack(const KernelSet& kernels, const Tensor& source, const PanelMatrix& into, PanelPlace place, int panel_begin,
            int panel_end) {
  const auto format = panel_format(source.dtype);
  CHECK(format.ok() && *format == into.format && source.cols == into.cols);
  CHECK(panel_begin >= 0 && panel_begin <= panel_end && panel_end <= panels_of(source.rows));
  CHECK(place.first_panel >= 0 && place.panel_step >= 1);
  if (panel_begin == panel_end) return;
  CHECK(std::int64_t{place.first_panel} + std::int64_t{panel_end - 1} * place.panel_step < into.panels);
  CHECK(reinterpret_cast<std::uintptr_t>(into.data) % 64 == 0 && into.data != nullptr);
  kernels.repack(source, into, place, panel_begin, panel_end);
}

void dequantize_row(const PanelMatrix& matrix, int row, float* out) {
  CHECK(row >= 0 && row < matrix.rows);
  const std::byte* const panel = matrix.panel(row / kPanelRows);
  const int lane = row % kPanelRows;
  const std::size_t unit = panel_unit_bytes(matrix.format);
  if (is_quantized(matrix.format)) {
    for (std::int32_t g = 0; g < matrix.cols / kGroup; ++g) {
      dequantize_group(matrix.format, panel + static_cast<std::size_t>(g) * unit, lane, out + g * kGroup);
    }
    return;
  }
  for (std::int32_t c = 0; c < matrix.cols; ++c)
    out[c] = dense_at(matrix.format, panel + static_cast<std::size_t>(c) * unit, lane);
}

}  // namespace linnet::cpu
