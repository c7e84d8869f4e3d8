// Weights of a linear layer as the kernels read them: panels of 16 rows, lane = row.
//
// A quantized panel holds, for each group of 32 columns in ascending order, the codes of its 16 rows and then 16 f16 scales and,
// for the affine formats, 16 f16 biases: weight = scale * code + bias. Nibbles: four vectors of 16 dwords; byte j of dword `lane`
// of vector i holds columns 4i + j (low nibble) and 16 + 4i + j (high) of the group; symmetric nibbles mean nibble - 8. Bytes:
// eight vectors of 16 dwords; byte j of dword `lane` of vector i is column 4i + j, signed. Dense panels hold 16 values for each
// column in ascending order.
//
// Q4_0 is kNibblesSymmetric, Q4_1 kNibblesAffine, Q5_0 and Q8_0 kBytesSymmetric, Q5_1 kBytesAffine: each weight is exactly the
// source's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "linnet/status.h"
#include "weights/tensor.h"

namespace linnet::cpu {

struct KernelSet;

inline constexpr int kPanelRows = 16;  // lanes
inline constexpr int kGroup = 32;      // columns that share a scale

enum class PanelFormat : std::uint8_t { kNibblesSymmetric, kNibblesAffine, kBytesSymmetric, kBytesAffine, kF32, kF16, kBF16 };

constexpr bool is_quantized(PanelFormat format) { return format < PanelFormat::kF32; }
constexpr bool is_affine(PanelFormat format) {
  return format == PanelFormat::kNibblesAffine || format == PanelFormat::kBytesAffine;
}
constexpr bool is_nibbles(PanelFormat format) {
  return format == PanelFormat::kNibblesSymmetric || format == PanelFormat::kNibblesAffine;
}

// Errors: kUnsupported, naming the type.
Result<PanelFormat> panel_format(DType dtype);

// Groups of a quantized panel: an even number and at least four, as the tiled kernels' pipeline wants them. Those beyond the last
// column are zero (codes, scales and biases) and change no bit of a result.
constexpr int panel_groups(std::int64_t cols) {
  const auto groups = static_cast<int>((cols + kGroup - 1) / kGroup);
  return groups < 4 ? 4 : (groups + 1) / 2 * 2;
}
// Bytes of one group of a quantized panel, or of one column of a dense one.
constexpr std::size_t panel_unit_bytes(PanelFormat format) {
  switch (format) {
    case PanelFormat::kNibblesSymmetric:
      return 256 + 32;
    case PanelFormat::kNibblesAffine:
      return 256 + 64;
    case PanelFormat::kBytesSymmetric:
      return 512 + 32;
    case PanelFormat::kBytesAffine:
      return 512 + 64;
    case PanelFormat::kF32:
      return 64;
    case PanelFormat::kF16:
    case PanelFormat::kBF16:
      return 32;
  }
  return 0;
}

// A matrix [rows, cols] of weights in memory of someone else; a value to be copied freely. Rows beyond the last are zero.
struct PanelMatrix {
  PanelFormat format = PanelFormat::kF32;
  std::int32_t rows = 0;  // outputs: lanes in use of panels that follow each other
  std::int32_t cols = 0;  // inputs
  std::int32_t panels = 0;
  std::int32_t units = 0;  // groups, or columns if dense
  std::size_t panel_bytes = 0;
  std::byte* data = nullptr;  // aligned to 64; panels * panel_bytes

  std::size_t bytes() const { return static_cast<std::size_t>(panels) * panel_bytes; }
  std::byte* panel(int index) const { return data + static_cast<std::size_t>(index) * panel_bytes; }
};

// The shape of a matrix; `data` is to be set by the owner of the memory, bytes() of it.
// Errors: kUnsupported, if the type has no panels or its columns are no multiple of 32 while it is quantized; kTooLarge.
Result<PanelMatrix> panel_matrix(DType dtype, std::int64_t rows, std::int64_t cols);
// Gate and up of a feed-forward, [rows, cols] each, interleaved for Epilogue::kSwiglu: panel 2i holds rows 16i .. of gate, panel
// 2i + 1 of up. `rows` of the result is 2 * rows, its panels an even number.
Result<PanelMatrix> panel_matrix_pairs(DType dtype, std::int64_t rows, std::int64_t cols);
// bytes() of the first, or 0 where it is an error.
std::size_t panel_matrix_bytes(DType dtype, std::int64_t rows, std::int64_t cols);

// Where the rows of a source go: its panel i becomes panel first_panel + i * panel_step of the target. Matrices with the same
// input and type can be joined by rows: each begins at a panel. Gate and up: first_panel 0 and 1, panel_step 2.
struct PanelPlace {
  std::int32_t first_panel = 0;
  std::int32_t panel_step = 1;
};

constexpr std::int32_t panels_of(std::int64_t rows) { return static_cast<std::int32_t>((rows + kPanelRows - 1) / kPanelRows); }

// Writes panels [panel_begin, panel_end) of `source` (counted in the source) into `into`, whose format and columns fit. Ranges
// may be given to different threads. Reads source.data only.
void repack(const KernelSet& kernels, const Tensor& source, const PanelMatrix& into, PanelPlace place, int panel_begin,
            int panel_end);

// Row `row` of the matrix (lane row % 16 of panel row / 16): cols floats, exactly the source's values.
void dequantize_row(const PanelMatrix& matrix, int row, float* out);

}  // namespace linnet::cpu
