// Rounding of activations and RMS norm in plain C++.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "backends/cpu/kernels/kernels_portable.h"

namespace linnet::cpu {
namespace {

// Columns are folded into 64 sums, columns ascending, then those pairwise: the order of rms_norm everywhere.
float sum_of_squares(const float* x, std::int32_t cols) {
  float acc[64] = {};
  for (std::int32_t c = 0; c < cols; ++c) acc[c % 64] = std::fma(x[c], x[c], acc[c % 64]);
  float sum[16];
  for (int i = 0; i < 16; ++i) sum[i] = (acc[i] + acc[16 + i]) + (acc[32 + i] + acc[48 + i]);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) sum[i] = sum[i] + sum[i + width];
  }
  return sum[0];
}

float norm_factor(const float* x, std::int32_t cols, float eps) {
  return 1.0F / std::sqrt(sum_of_squares(x, cols) / static_cast<float>(cols) + eps);
}

// Value `column` of what is to be rounded: x, or x * factor * weight.
float value_at(const float* x, const float* weight, float factor, std::int32_t column) {
  return weight == nullptr ? x[column] : x[column] * factor * weight[column];
}

// The 32 integers of a unit.
void put_unit(const Activations& out, int row, int unit, const std::int32_t* values) {
  const std::ptrdiff_t step = out.bytes.block_rows;
  const std::ptrdiff_t base = (std::ptrdiff_t{row / out.bytes.block_rows} * out.units + unit) * step;
  const std::ptrdiff_t r = row % out.bytes.block_rows;
  std::byte* const high = out.bytes.codes + (2 * base + r) * 32;
  std::byte* const low = high + step * 32;
  std::int32_t sums[2] = {};
  for (int c = 0; c < kUnit; ++c) {
    const std::int32_t upper = (values[c] + 128) >> 8;
    high[c] = static_cast<std::byte>(upper);
    low[c] = static_cast<std::byte>(values[c] - 256 * upper);
    sums[c / 16] += values[c];
  }
  out.bytes.sums[base + r] = static_cast<float>(sums[0] + sums[1]);
  for (int half = 0; half < 2; ++half) out.bytes.negated[2 * base + half * step + r] = -sums[half];
}

// Values of a row's columns from `first` on that a segment has, zero beyond the last column.
using SegmentValues = float[kSegmentUnits * kUnit];

void round_segment(const SegmentValues& values, const Activations& out, int row, int segment) {
  std::uint32_t magnitude = 0;
  for (const float value : values) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
    magnitude = bits > magnitude ? bits : magnitude;
  }
  const SegmentRounding rounding = segment_rounding(magnitude);
  const std::ptrdiff_t block_rows = out.bytes.block_rows;
  out.bytes.scales[(row / block_rows * out.segments() + segment) * block_rows + row % block_rows] = rounding.scale;
  for (int u = 0; u < kSegmentUnits && segment * kSegmentUnits + u < out.units; ++u) {
    std::int32_t integers[kUnit] = {};
    for (int c = 0; c < kUnit && rounding.steps != 0.0F; ++c)
      integers[c] = static_cast<std::int32_t>(std::nearbyint(values[u * kUnit + c] * rounding.steps));
    put_unit(out, row, segment * kSegmentUnits + u, integers);
  }
}

}  // namespace

void round_rows_portable(const RoundTask& task, const Activations& out, int row_begin, int row_end) {
  for (int row = row_begin; row < row_end; ++row) {
    const float* const x = task.x.data + row * task.x.stride;
    const float factor = task.weight == nullptr ? 1.0F : norm_factor(x, out.cols, task.eps);
    for (std::int32_t c = 0; c < out.cols && out.floats != nullptr; ++c)
      out.floats[std::ptrdiff_t{row} * out.cols + c] = value_at(x, task.weight, factor, c);
    for (int s = 0; s < out.segments(); ++s) {
      SegmentValues values = {};
      for (int c = 0; c < kSegmentUnits * kUnit && s * kSegmentUnits * kUnit + c < out.cols; ++c)
        values[c] = value_at(x, task.weight, factor, s * kSegmentUnits * kUnit + c);
      round_segment(values, out, row, s);
    }
  }
}

void rms_norm_portable(const RmsNormTask& task, int row_begin, int row_end) {
  for (int row = row_begin; row < row_end; ++row) {
    const float* const x = task.x + row * task.x_stride;
    float* const out = task.out + row * task.out_stride;
    const float factor = norm_factor(x, task.cols, task.eps);
    for (std::int32_t c = 0; c < task.cols; ++c) out[c] = value_at(x, task.weight, factor, c);
  }
}

}  // namespace linnet::cpu
