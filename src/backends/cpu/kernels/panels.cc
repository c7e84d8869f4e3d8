#include "backends/cpu/kernels/panels.h"

#include <cstring>
#include <string>

#include "backends/cpu/kernels/kernel_set.h"
#include "base/check.h"
#include "weights/half.h"

namespace linnet::cpu {
namespace {

// Panels times their bytes stay far from 64 bits.
constexpr std::int64_t kRowsMax = 1 << 28;

std::string shape_of(std::int64_t rows, std::int64_t cols) {
  std::string text(1, '[');
  text.append(std::to_string(rows)).append(", ").append(std::to_string(cols)).append(1, ']');
  return text;
}

// `count` matrices [rows, cols] side by side.
Result<PanelMatrix> matrix_of(PanelFormat format, std::int64_t rows, std::int64_t cols, std::int32_t count) {
  if (rows <= 0 || cols <= 0 || rows > kRowsMax || cols > kColsMax) {
    return Error{ErrorCode::kTooLarge,
                 "a matrix " + shape_of(rows, cols) + " is beyond the limits, 1 to " + std::to_string(kRowsMax) +
                     " rows and 1 to " + std::to_string(kColsMax) + " columns",
                 {}};
  }
  const int multiple = format.group < kUnit ? kUnit : format.group;
  if (is_quantized(format) && cols % multiple != 0) {
    return Error{ErrorCode::kUnsupported,
                 "a quantized matrix " + shape_of(rows, cols) + " has a number of columns that is not a multiple of " +
                     std::to_string(multiple),
                 {}};
  }
  PanelMatrix matrix;
  matrix.format = format;
  matrix.rows = count * static_cast<std::int32_t>(rows);
  matrix.cols = static_cast<std::int32_t>(cols);
  matrix.panels = count * panels_of(rows);
  matrix.groups = is_quantized(format) ? panel_groups(cols, format.group) : matrix.cols;
  matrix.panel_bytes = static_cast<std::size_t>((matrix.groups * panel_group_bytes(format) + 63) / 64 * 64);
  return matrix;
}

int code_at(PanelFormat format, const std::byte* codes, int column, int lane) {
  const int in_unit = column % kUnit;
  if (!is_nibbles(format)) {
    const auto byte = static_cast<int>(codes[column / 4 * 64 + lane * 4 + column % 4]);
    return format.affine ? byte : static_cast<std::int8_t>(byte);
  }
  const int in_half = in_unit % 16;
  const auto byte = static_cast<int>(codes[column / kUnit * 256 + in_half / 4 * 64 + lane * 4 + in_half % 4]);
  return (in_unit < 16 ? byte & 15 : byte >> 4) - (format.affine ? 0 : 8);
}

void dequantize_group(PanelFormat format, const std::byte* group, int lane, float* out) {
  const std::byte* const scales = group + code_bytes(format);
  const float scale = panel_number(format.numbers, scales, lane);
  const float bias = format.affine ? panel_number(format.numbers, scales + numbers_bytes(format), lane) : 0.0F;
  for (int c = 0; c < format.group; ++c) {
    const float product = scale * static_cast<float>(code_at(format, group, c, lane));
    out[c] = format.affine ? product + bias : product;
  }
}

PanelFormat groups_of_32(Codes codes, bool affine, DType numbers) {
  return {.codes = codes, .group = 32, .affine = affine, .numbers = numbers};
}

Result<PanelFormat> affine_format(const AffineGroups& affine) {
  const bool known_bits = affine.bits >= 2 && affine.bits <= 8 && affine.bits != 7;
  const bool known_group = affine.group == 32 || affine.group == 64 || affine.group == 128;
  const bool known_type = affine.type == DType::kF32 || affine.type == DType::kF16 || affine.type == DType::kBF16;
  if (!known_bits || !known_group || !known_type) {
    return Error{ErrorCode::kUnsupported,
                 "the CPU kernels do not read affine weights of " + std::to_string(affine.bits) + " bits in groups of " +
                     std::to_string(affine.group) + " with scales of type " + std::string(dtype_name(affine.type)) +
                     "; they read 2, 3, 4, 5, 6 and 8 bits, groups of 32, 64 and 128, and scales in F32, F16 and BF16",
                 {}};
  }
  return PanelFormat{.codes = affine.bits <= 4 ? Codes::kNibbles : Codes::kBytes,
                     .group = static_cast<std::uint8_t>(affine.group),
                     .affine = true,
                     .numbers = affine.type};
}

}  // namespace

Result<PanelFormat> panel_format(const Tensor& source) {
  if (source.affine) return affine_format(*source.affine);
  switch (source.dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return PanelFormat{.numbers = source.dtype};
    case DType::kQ4_0:
      return groups_of_32(Codes::kNibbles, false, DType::kF16);
    case DType::kQ4_1:
      return groups_of_32(Codes::kNibbles, true, DType::kF16);
    case DType::kQ5_0:
    case DType::kQ8_0:
      return groups_of_32(Codes::kBytes, false, DType::kF16);
    case DType::kQ5_1:
      return groups_of_32(Codes::kBytes, true, DType::kF16);
    case DType::kQ4_K:
      return groups_of_32(Codes::kNibbles, true, DType::kF32);
    case DType::kQ5_K:
      return groups_of_32(Codes::kBytes, true, DType::kF32);
    case DType::kQ6_K:
      return PanelFormat{.codes = Codes::kBytes, .group = 16, .affine = false, .numbers = DType::kF32};
  }
  return Error{ErrorCode::kUnsupported, "the CPU kernels do not know the weights' type", {}};
}

Result<PanelMatrix> panel_matrix(PanelFormat format, std::int64_t rows, std::int64_t cols) {
  return matrix_of(format, rows, cols, 1);
}

Result<PanelMatrix> panel_matrix_pairs(PanelFormat format, std::int64_t rows, std::int64_t cols) {
  return matrix_of(format, rows, cols, 2);
}

void repack(const KernelSet& kernels, const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range) {
  const auto format = panel_format(source);
  CHECK(format.ok() && *format == into.format && source.cols == into.cols);
  CHECK(range.begin >= 0 && range.begin <= range.end && range.end <= panels_of(source.rows));
  CHECK(place.first_panel >= 0 && place.panel_step >= 1);
  if (range.begin == range.end) return;
  CHECK(std::int64_t{place.first_panel} + std::int64_t{range.end - 1} * place.panel_step < into.panels);
  CHECK(reinterpret_cast<std::uintptr_t>(into.data) % 64 == 0 && into.data != nullptr);
  kernels.repack(source, into, place, range);
}

float panel_number(DType type, const std::byte* numbers, int lane) {
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, numbers + lane * 4, 4);
    return value;
  }
  std::uint16_t word;
  std::memcpy(&word, numbers + lane * 2, 2);
  return type == DType::kF16 ? half_to_float(word) : bfloat16_to_float(word);
}

void dequantize_row(const PanelMatrix& matrix, int row, float* out) {
  CHECK(row >= 0 && row < matrix.rows);
  const std::byte* const panel = matrix.panel(row / kPanelRows);
  const int lane = row % kPanelRows;
  const std::ptrdiff_t step = panel_group_bytes(matrix.format);
  if (is_quantized(matrix.format)) {
    for (std::int32_t g = 0; g < matrix.cols / matrix.format.group; ++g)
      dequantize_group(matrix.format, panel + g * step, lane, out + g * matrix.format.group);
    return;
  }
  for (std::int32_t c = 0; c < matrix.cols; ++c) out[c] = panel_number(matrix.format.numbers, panel + c * step, lane);
}

}  // namespace linnet::cpu
