#include "backends/cpu/kernels/activations.h"

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/region.h"
#include "base/check.h"

namespace linnet::cpu {
namespace {

constexpr int kTailRowsMax = 16;  // rows that blocks may have beyond the last

constexpr int even(int rows) { return (rows + 1) / 2 * 2; }
constexpr int divided(int rows, int parts) { return (rows + parts - 1) / parts; }

// Up to 16 rows of a block fit a tile. Weights of nibbles meet one block or two with one panel at a time; many blocks, two panels
// at a time, have at most 12 rows, since their sums fill the registers.
int tile_block_rows(int rows) {
  if (rows <= 16) return even(rows < kTileRowsMin ? kTileRowsMin : rows);
  if (rows <= 32) return even(divided(rows, 2));
  return even(divided(rows, divided(rows, 12)));
}

// Both halves of up to 8 rows share a tile; without tiles four rows are taken at a time.
int byte_block_rows(bool tiles, int rows) {
  if (rows < kTileRowsMin) return rows < 1 ? 1 : rows;
  return tiles ? even(divided(rows, divided(rows, 8))) : 4;
}

struct BlocksShape {
  int rows = 0;
  int groups = 0;
  int block_rows = 0;
  std::size_t code_bytes = 0;  // of both halves of a group of one row
};

ActivationBlocks take_blocks(Carver& carver, const BlocksShape& shape, bool negated) {
  ActivationBlocks blocks;
  blocks.block_rows = shape.block_rows;
  blocks.blocks = divided(shape.rows, shape.block_rows);
  const auto entries = static_cast<std::size_t>(blocks.blocks) * static_cast<std::size_t>(blocks.block_rows) *
                       static_cast<std::size_t>(shape.groups);
  blocks.codes = carver.take<std::byte>(entries * shape.code_bytes);
  blocks.sums = carver.take<float>(entries);
  if (negated) blocks.negated = carver.take<std::int32_t>(entries);
  return blocks;
}

// Rows of the last block beyond the last row.
void zero_tail(const ActivationBlocks& blocks, int rows, int groups, std::size_t code_bytes) {
  if (!blocks || rows == 0) return;
  const int used = rows - (blocks.blocks - 1) * blocks.block_rows;
  const std::size_t base = static_cast<std::size_t>(blocks.blocks - 1) * static_cast<std::size_t>(groups);
  const auto block_rows = static_cast<std::size_t>(blocks.block_rows);
  for (std::size_t g = 0; g < static_cast<std::size_t>(groups); ++g) {
    for (auto r = static_cast<std::size_t>(used); r < block_rows; ++r) {
      const std::size_t at = (base + g) * block_rows;
      for (std::size_t half = 0; half < 2; ++half) {
        __builtin_memset(blocks.codes + (2 * at + half * block_rows + r) * (code_bytes / 2), 0, code_bytes / 2);
      }
      blocks.sums[at + r] = 0;
      if (blocks.negated != nullptr) blocks.negated[at + r] = 0;
    }
  }
}

void round_task(const KernelSet& kernels, const RoundTask& task, const Activations& out, int row_begin, int row_end) {
  CHECK(row_begin >= 0 && row_begin <= row_end && row_end <= out.rows);
  if (row_begin == row_end) return;
  kernels.round_rows(task, out, row_begin, row_end);
  if (row_end != out.rows) return;
  zero_tail(out.bytes, out.rows, out.groups, 64);
  zero_tail(out.tiles, out.rows, out.groups, 128);
}

}  // namespace

ActivationForms activation_forms(const KernelSet& kernels, PanelFormat format, int rows) {
  if (!is_quantized(format)) return {.floats = true};
  if (kernels.tiles && is_nibbles(format) && rows >= kTileRowsMin) return {.tiles = true};
  return {.bytes = true};
}

std::size_t activations_bytes(std::int64_t rows_max, std::int64_t cols_max) {
  CHECK(rows_max >= 0 && cols_max >= 1);
  const auto rows = static_cast<std::size_t>(rows_max);
  const std::size_t padded = rows + kTailRowsMax;
  const auto groups = static_cast<std::size_t>(panel_groups(cols_max));
  Carver carver(nullptr);
  carver.take<float>(rows * static_cast<std::size_t>(cols_max));
  carver.take<float>(rows);
  carver.take<std::byte>(padded * groups * 64);
  carver.take<float>(padded * groups);
  carver.take<std::int32_t>(padded * groups);
  carver.take<std::byte>(padded * groups * 128);
  carver.take<float>(padded * groups);
  return carver.size();
}

Activations make_activations(const KernelSet& kernels, ActivationForms forms, int rows, int cols, std::byte* scratch) {
  CHECK(rows >= 0 && cols >= 1 && scratch != nullptr && reinterpret_cast<std::uintptr_t>(scratch) % 64 == 0);
  Carver carver(scratch);
  Activations x;
  x.rows = rows;
  x.cols = cols;
  x.groups = panel_groups(cols);
  x.scales = carver.take<float>(static_cast<std::size_t>(rows));
  if (forms.floats) x.floats = carver.take<float>(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
  if (forms.bytes) x.bytes = take_blocks(carver, {rows, x.groups, byte_block_rows(kernels.tiles, rows), 64}, true);
  if (forms.tiles) x.tiles = take_blocks(carver, {rows, x.groups, tile_block_rows(rows), 128}, false);
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
