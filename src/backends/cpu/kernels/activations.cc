#include "backends/cpu/kernels/activations.h"

#include <cstring>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/region.h"
#include "base/check.h"

namespace linnet::cpu {
namespace {

constexpr int kTailRowsMax = 8;  // rows that blocks may have beyond the last

constexpr int even(int rows) { return (rows + 1) / 2 * 2; }
constexpr int divided(int rows, int parts) { return (rows + parts - 1) / parts; }

// Without tiles, four rows are taken at a time.
int rows_of_block(bool tiles, int rows) {
  if (rows < kTileRowsMin) return rows < 1 ? 1 : rows;
  if (!tiles) return kTileRowsMin;
  const int block_rows = even(divided(rows, divided(rows, kTileRowsMax)));
  return block_rows < kTileRowsMin ? kTileRowsMin : block_rows;
}

ActivationBlocks take_blocks(Carver& carver, int rows, int units, int block_rows) {
  ActivationBlocks blocks;
  blocks.block_rows = block_rows;
  blocks.blocks = divided(rows, block_rows);
  const auto entries =
      static_cast<std::size_t>(blocks.blocks) * static_cast<std::size_t>(block_rows) * static_cast<std::size_t>(units);
  blocks.codes = carver.take<std::byte>(entries * 64);
  blocks.scales = carver.take<float>(static_cast<std::size_t>(blocks.blocks) * static_cast<std::size_t>(block_rows) *
                                     static_cast<std::size_t>(divided(units, kSegmentUnits)));
  blocks.sums = carver.take<float>(entries);
  blocks.negated = carver.take<std::int32_t>(entries * 2);
  return blocks;
}

// Rows of the last block beyond the last row.
void zero_tail(const ActivationBlocks& blocks, int rows, int units) {
  const auto block_rows = static_cast<std::size_t>(blocks.block_rows);
  const auto used = static_cast<std::size_t>(rows) - static_cast<std::size_t>(blocks.blocks - 1) * block_rows;
  const std::size_t tail = block_rows - used;
  if (tail == 0) return;
  const std::size_t first = static_cast<std::size_t>(blocks.blocks - 1) * static_cast<std::size_t>(units);
  for (std::size_t u = first; u < first + static_cast<std::size_t>(units); ++u) {
    for (std::size_t half = 2 * u; half < 2 * u + 2; ++half) {
      std::memset(blocks.codes + (half * block_rows + used) * 32, 0, tail * 32);
      std::memset(blocks.negated + half * block_rows + used, 0, tail * sizeof(std::int32_t));
    }
    std::memset(blocks.sums + u * block_rows + used, 0, tail * sizeof(float));
  }
  const auto segments = static_cast<std::size_t>(divided(units, kSegmentUnits));
  for (std::size_t s = static_cast<std::size_t>(blocks.blocks - 1) * segments; s < blocks.blocks * segments; ++s)
    std::memset(blocks.scales + s * block_rows + used, 0, tail * sizeof(float));
}

void round_task(const KernelSet& kernels, const RoundTask& task, const Activations& out, int row_begin, int row_end) {
  CHECK(row_begin >= 0 && row_begin <= row_end && row_end <= out.rows);
  if (row_begin == row_end) return;
  kernels.round_rows(task, out, row_begin, row_end);
  if (row_end == out.rows && out.bytes) zero_tail(out.bytes, out.rows, out.units);
}

}  // namespace

std::size_t activations_bytes(std::int64_t rows_max, std::int64_t cols_max) {
  CHECK(rows_max >= 0 && cols_max >= 1);
  const auto rows = static_cast<std::size_t>(rows_max);
  const std::size_t padded = rows + kTailRowsMax;
  const auto units = static_cast<std::size_t>(panel_groups(cols_max, kGroupMax) * (kGroupMax / kUnit));
  Carver carver(nullptr);
  carver.take<float>(rows * static_cast<std::size_t>(cols_max));
  carver.take<std::byte>(padded * units * 64);
  carver.take<float>(padded * ((units + kSegmentUnits - 1) / kSegmentUnits));
  carver.take<float>(padded * units);
  carver.take<std::int32_t>(padded * units * 2);
  return carver.size();
}

Activations make_activations(const KernelSet& kernels, ActivationForms forms, int rows, int cols, std::byte* scratch) {
  CHECK(rows >= 0 && cols >= 1 && scratch != nullptr && reinterpret_cast<std::uintptr_t>(scratch) % 64 == 0);
  Carver carver(scratch);
  Activations x;
  x.rows = rows;
  x.cols = cols;
  x.units = (forms.units + 1) / 2 * 2;
  if (forms.floats) x.floats = carver.take<float>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  if (x.units > 0) x.bytes = take_blocks(carver, rows, x.units, rows_of_block(kernels.tiles, rows));
  return x;
}

void round_rows(const KernelSet& kernels, RowsIn x, const Activations& out, int row_begin, int row_end) {
  round_task(kernels, {.x = x, .weight = nullptr, .eps = 0}, out, row_begin, row_end);
}

void rms_norm_round(const KernelSet& kernels, RowsIn x, const float* weight, float eps, const Activations& out, int row_begin,
                    int row_end) {
  CHECK(weight != nullptr);
  round_task(kernels, {.x = x, .weight = weight, .eps = eps}, out, row_begin, row_end);
}

}  // namespace linnet::cpu
