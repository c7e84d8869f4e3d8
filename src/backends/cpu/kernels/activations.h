// Inputs of linear layers: rows of f32, and rows rounded to 16 bits for quantized weights.
//
// A rounded row has one f32 scale for each segment of 256 columns and an integer of 16 bits for each column, held as two signed
// bytes: value = scale * (256 * high + low), scale = max|x of the segment| / 32639. So an outlier coarsens its own segment only.
// A segment with NaN or infinity has scale NaN and integers zero: the row's outputs are NaN, other rows don't know. A segment
// whose largest magnitude is below 2^-80 counts as zero, so that no result depends on how subnormals are treated.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/panels.h"

namespace linnet::cpu {

inline constexpr float kActivationSteps = 32639.0F;       // 127 * 256 + 127: the largest magnitude of a rounded value
inline constexpr float kActivationSmallest = 0x1.0p-80F;  // segments that stay below count as zero
inline constexpr int kSegmentUnits = 8;                   // of 32 columns; whole groups of every format

// The forms in which rows are read, by the format of the weights. Both may be asked for at once.
struct ActivationForms {
  bool floats = false;     // [rows, cols] f32: dense weights
  std::int32_t units = 0;  // of high and low bytes, those beyond the last column zero: quantized weights

  friend ActivationForms operator|(ActivationForms a, ActivationForms b) {
    return {a.floats || b.floats, a.units > b.units ? a.units : b.units};
  }
};

// Which form `linear` reads for these weights.
constexpr ActivationForms activation_forms(const PanelMatrix& weights) {
  if (!is_quantized(weights.format)) return {.floats = true};
  return {.units = weights.groups * weights.format.group / kUnit};
}

// Rounded rows cut into blocks; a block's rows lie next to each other unit by unit (32 columns). Rows of the last block beyond
// the last row are zero. Codes: [block][unit][high, low][block_rows][32], columns in ascending order.
struct ActivationBlocks {
  std::int32_t block_rows = 0;
  std::int32_t blocks = 0;
  std::byte* codes = nullptr;       // 64-byte aligned
  float* scales = nullptr;          // [block][segment][block_rows]
  float* sums = nullptr;            // [block][unit][block_rows] sum of the unit's integers: exact, and so are sums of four
  std::int32_t* negated = nullptr;  // [block][unit][2][block_rows] the same of 16 columns each, negated

  explicit operator bool() const { return codes != nullptr; }
};

inline constexpr int kTileRowsMin = 4;  // fewer rows are quicker without tiles
inline constexpr int kTileRowsMax = 8;  // both halves of so many rows share a tile

// How a segment is rounded: its scale, and the factor that makes integers of its values (0: they are all zero).
struct SegmentRounding {
  float scale = 0;
  float steps = 0;
};
// From the bits of the largest |value| of the segment.
constexpr SegmentRounding segment_rounding(std::uint32_t magnitude) {
  if (magnitude >= 0x7f800000U) return {std::bit_cast<float>(0x7fc00000U), 0};
  const float largest = std::bit_cast<float>(magnitude);
  if (largest < kActivationSmallest) return {0, 0};
  return {largest / kActivationSteps, kActivationSteps / largest};
}

// A view of a thread-shared scratch; a value. Written by row ranges on different threads, read after a barrier.
struct Activations {
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t units = 0;   // an even number
  float* floats = nullptr;  // [rows, cols], null if not asked for
  ActivationBlocks bytes;

  std::int32_t segments() const { return (units + kSegmentUnits - 1) / kSegmentUnits; }
};

// What make_activations may take of scratch for up to rows_max rows and cols_max columns in all forms.
std::size_t activations_bytes(std::int64_t rows_max, std::int64_t cols_max);
// Lays activations out in `scratch` (64-byte aligned). Any thread may do so, with the same result.
Activations make_activations(const KernelSet& kernels, ActivationForms forms, int rows, int cols, std::byte* scratch);

// Rows of f32 in memory: row r begins at data + r * stride.
struct RowsIn {
  const float* data = nullptr;
  std::int64_t stride = 0;  // floats
};

// Rounds rows [row_begin, row_end) of x into `out`. The bits of a row depend on that row alone.
void round_rows(const KernelSet& kernels, RowsIn x, const Activations& out, int row_begin, int row_end);
// The same for x * weight / sqrt(mean(x^2) + eps), as rms_norm in elementwise.h gives it (Zhang and Sennrich 2019); weight:
// [cols].
void rms_norm_round(const KernelSet& kernels, RowsIn x, const float* weight, float eps, const Activations& out, int row_begin,
                    int row_end);

}  // namespace linnet::cpu
