// y = W x, or W x + b, for rows of activations and panels of weights.
//
// Quantized: inside a group (of 16 to 128 columns) products are summed exactly as integers of 32 bits; groups are added in f32 in
// ascending order,
//   acc = fma(f32(sum), scale, acc); affine: acc = fma(bias, f32(sum of x), acc)
// from 0 within a segment of 256 columns, and segments in ascending order: y = fma(acc, scale of x's segment, y), from 0.
// So a row's bits don't depend on the number of rows, the panel range, or the instruction set. Dense: acc = fma(w, x, acc),
// columns ascending; bits don't depend on rows and range. A bias is added to the finished product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/activations.h"
#include "backends/cpu/kernels/panels.h"

namespace linnet::cpu {

enum class Epilogue : std::uint8_t {
  kStore,   // y = W x + b
  kAdd,     // y = y + (W x + b): the residual
  kSwiglu,  // y[n] = silu(gate[n]) * up[n]; weights from panel_matrix_pairs; y has rows / 2 columns
};

struct LinearOutput {
  float* y = nullptr;       // row r begins at y + r * stride; column = row of the matrix
  std::int64_t stride = 0;  // floats
  Epilogue epilogue = Epilogue::kStore;
};

// A part of a matrix's panels, and a thread's own memory for it.
struct LinearShare {
  std::int32_t panel_begin = 0;  // even for kSwiglu, as panel_end
  std::int32_t panel_end = 0;
  std::byte* scratch = nullptr;  // linear_scratch_bytes(), 64-byte aligned; no two threads share one
};

// A thread's scratch: room for widened weights, within its L2.
inline constexpr std::size_t kLinearScratchBytes = 704 * 1024;
constexpr std::size_t linear_scratch_bytes() { return kLinearScratchBytes; }

// Computes the share's columns for all rows of x. Ranges may be given to different threads; nothing outside the range's columns
// and the rows of x is written.
void linear(const KernelSet& kernels, const PanelMatrix& weights, const Activations& x, const LinearOutput& out,
            const LinearShare& share);

// Thread `index` of `count`: a share of panels, contiguous, sizes differing by at most two panels, boundaries even where the
// number allows.
LinearShare linear_share(const PanelMatrix& weights, int index, int count, std::byte* scratch);

}  // namespace linnet::cpu
