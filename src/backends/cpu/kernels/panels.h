// Weights of a linear layer as the kernels read them: panels of 16 rows, lane = row.
//
// A quantized panel holds its groups (of 16, 32, 64 or 128 columns that share a scale) in ascending order: the codes of 16 rows,
// then 16 scales and, for the affine formats, 16 biases: weight = scale * code + bias. Codes come in units of 32 columns (a group
// of 16: half a unit). Nibbles: four vectors of 16 dwords; byte j of dword `lane` of vector i holds columns 4i + j (low nibble)
// and 16 + 4i + j (high) of the unit. Bytes: eight vectors (four for 16 columns); byte j of dword `lane` of vector i is column
// 4i + j. Codes of affine formats are unsigned; symmetric nibbles mean nibble - 8, symmetric bytes are signed. Dense panels hold
// 16 numbers for each column in ascending order.
//
// Bits of the source end here: codes of 2 and 3 bits become nibbles, of 5 and 6 bytes. Each weight is exactly the source's:
//   Q4_0 Q4_1 Q5_0 Q5_1 Q8_0   groups of 32, f16 scales
//   Q4_K Q5_K                  affine groups of 32; f32 products of the block's two scales
//   Q6_K                       symmetric bytes, groups of 16, f32 scales
//   MLX's affine groups        groups, scales and biases as they are
#pragma once

#include <cstddef>
#include <cstdint>

#include "linnet/status.h"
#include "weights/tensor.h"

namespace linnet::cpu {

struct KernelSet;

inline constexpr int kPanelRows = 16;     // lanes
inline constexpr int kUnit = 32;          // columns of a unit of codes
inline constexpr int kGroupMax = 128;     // columns
inline constexpr int kColsMax = 1 << 18;  // so that a row fits a thread's scratch

enum class Codes : std::uint8_t { kNibbles, kBytes, kNumbers };  // kNumbers: dense

struct PanelFormat {
  Codes codes = Codes::kNumbers;
  std::uint8_t group = 1;       // columns that share a scale; 1 if dense
  bool affine = false;          // groups have biases, codes are unsigned
  DType numbers = DType::kF32;  // F32, F16 or BF16: of scales and biases, or of the weights if dense

  friend constexpr bool operator==(const PanelFormat&, const PanelFormat&) = default;
};

constexpr bool is_quantized(PanelFormat format) { return format.codes != Codes::kNumbers; }
constexpr bool is_nibbles(PanelFormat format) { return format.codes == Codes::kNibbles; }

// Errors: kUnsupported, naming the type.
Result<PanelFormat> panel_format(const Tensor& source);

// Groups of a quantized panel: an even number and at least four, as the tiled kernels' pipeline wants them. Those beyond the last
// column are zero (codes, scales and biases) and change no bit of a result.
constexpr int panel_groups(std::int64_t cols, int group) {
  const auto groups = static_cast<int>((cols + group - 1) / group);
  return groups < 4 ? 4 : (groups + 1) / 2 * 2;
}
// Bytes of a group's codes; 0 if dense.
constexpr std::ptrdiff_t code_bytes(PanelFormat format) {
  if (!is_quantized(format)) return 0;
  return std::ptrdiff_t{format.group} * kPanelRows / (is_nibbles(format) ? 2 : 1);
}
// Bytes of 16 scales, or of a column of a dense panel.
constexpr std::ptrdiff_t numbers_bytes(PanelFormat format) { return kPanelRows * (format.numbers == DType::kF32 ? 4 : 2); }
// Bytes of one group of a quantized panel, or of one column of a dense one.
constexpr std::ptrdiff_t panel_group_bytes(PanelFormat format) {
  return code_bytes(format) + numbers_bytes(format) * (format.affine ? 2 : 1);
}

// A matrix [rows, cols] of weights in memory of someone else; a value to be copied freely. Rows beyond the last are zero.
struct PanelMatrix {
  PanelFormat format;
  std::int32_t rows = 0;  // outputs: lanes in use of panels that follow each other
  std::int32_t cols = 0;  // inputs
  std::int32_t panels = 0;
  std::int32_t groups = 0;  // with those beyond the last column; columns if dense
  std::size_t panel_bytes = 0;
  std::byte* data = nullptr;  // aligned to 64; panels * panel_bytes
  float* bias = nullptr;      // [panels][16], added to the product; null: none

  std::size_t bytes() const { return static_cast<std::size_t>(panels) * panel_bytes; }
  std::byte* panel(int index) const { return data + static_cast<std::size_t>(index) * panel_bytes; }
};

// The shape of a matrix; `data` is to be set by the owner of the memory, bytes() of it.
// Errors: kUnsupported, if the columns of a quantized matrix are no multiple of its group and of 32; kTooLarge.
Result<PanelMatrix> panel_matrix(PanelFormat format, std::int64_t rows, std::int64_t cols);
// Gate and up of a feed-forward, [rows, cols] each, interleaved for Epilogue::kSwiglu: panel 2i holds rows 16i .. of gate, panel
// 2i + 1 of up. `rows` of the result is 2 * rows, its panels an even number.
Result<PanelMatrix> panel_matrix_pairs(PanelFormat format, std::int64_t rows, std::int64_t cols);

// Where the rows of a source go: its panel i becomes panel first_panel + i * panel_step of the target. Matrices with the same
// input and type can be joined by rows: each begins at a panel. Gate and up: first_panel 0 and 1, panel_step 2.
struct PanelPlace {
  std::int32_t first_panel = 0;
  std::int32_t panel_step = 1;
};

// Panels [begin, end) of a source.
struct PanelRange {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

constexpr std::int32_t panels_of(std::int64_t rows) { return static_cast<std::int32_t>((rows + kPanelRows - 1) / kPanelRows); }

// Writes panels of `source` (counted there) into `into`, whose format and columns fit. Ranges may be given to different threads.
void repack(const KernelSet& kernels, const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range);

// One of 16 numbers (scales, biases, a dense column) of F32, F16 or BF16.
float panel_number(DType type, const std::byte* numbers, int lane);

// Row `row` of the matrix (lane row % 16 of panel row / 16): cols floats, the source's values as its format rounds them to f32.
void dequantize_row(const PanelMatrix& matrix, int row, float* out);

}  // namespace linnet::cpu
