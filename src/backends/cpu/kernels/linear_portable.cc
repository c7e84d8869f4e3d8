// Linear layers in plain C++: the specification of the other sets. Quantized results are the same bits as theirs.
#include <cmath>

#include "backends/cpu/kernels/kernels_portable.h"

namespace linnet::cpu {
namespace {

float with_bias(const PanelMatrix& weights, int panel, int lane, float product) {
  return weights.bias == nullptr ? product : product + weights.bias[panel * kPanelRows + lane];
}

// Sums of two neighbouring panels of one row on their way into y.
void finish(const PanelMatrix& weights, const LinearOutput& out, int row, int panel, int panels,
            const float (&sums)[2][kPanelRows]) {
  const bool swiglu = out.epilogue == Epilogue::kSwiglu;
  const std::int32_t columns = swiglu ? weights.rows / 2 : weights.rows;
  for (int i = 0; i < (swiglu ? 1 : panels); ++i) {
    const std::int32_t column = (swiglu ? panel / 2 : panel + i) * kPanelRows;
    float* const y = out.y + row * out.stride + column;
    for (int lane = 0; lane < kPanelRows && column + lane < columns; ++lane) {
      const float value = with_bias(weights, panel + i, lane, sums[i][lane]);
      switch (out.epilogue) {
        case Epilogue::kStore:
          y[lane] = value;
          break;
        case Epilogue::kAdd:
          y[lane] = y[lane] + value;
          break;
        case Epilogue::kSwiglu:
          y[lane] = silu_product_portable(value, with_bias(weights, panel + 1, lane, sums[1][lane]));
          break;
      }
    }
  }
}

using GroupCodes = std::int32_t[kGroupMax][kPanelRows];  // [column][lane]

void unpack_nibbles(const std::byte* units, PanelFormat format, GroupCodes& codes) {
  const std::int32_t middle = format.affine ? 0 : 8;
  for (int c = 0; c < format.group; c += kUnit, units += 256) {
    for (int i = 0; i < 256; ++i) {
      const auto byte = static_cast<std::int32_t>(units[i]);
      const int column = c + i / 64 * 4 + i % 4;
      const int lane = i % 64 / 4;
      codes[column][lane] = (byte & 15) - middle;
      codes[column + 16][lane] = (byte >> 4) - middle;
    }
  }
}

void unpack_bytes(const std::byte* units, PanelFormat format, GroupCodes& codes) {
  for (int i = 0; i < format.group * kPanelRows; ++i) {
    const auto byte = static_cast<std::int32_t>(units[i]);
    codes[i / 64 * 4 + i % 4][i % 64 / 4] = format.affine ? byte : static_cast<std::int8_t>(byte);
  }
}

// acc += the group's part of one row.
void add_group(const PanelMatrix& weights, const std::byte* group, const GroupCodes& codes, const Activations& x, int row, int g,
               float (&acc)[kPanelRows]) {
  const PanelFormat format = weights.format;
  const ActivationBlocks& bytes = x.bytes;
  const std::ptrdiff_t step = bytes.block_rows;
  const std::ptrdiff_t block = std::ptrdiff_t{row / bytes.block_rows} * x.units * step;
  const std::ptrdiff_t r = row % bytes.block_rows;
  std::int32_t sums[kPanelRows] = {};
  float x_sum = 0;
  for (int c = 0; c < format.group; ++c) {
    const std::ptrdiff_t column = std::ptrdiff_t{g} * format.group + c;
    const std::ptrdiff_t unit = block + column / kUnit * step;
    const std::byte* const high = bytes.codes + (2 * unit + r) * 32 + column % kUnit;
    const std::int32_t value = 256 * static_cast<std::int8_t>(high[0]) + static_cast<std::int8_t>(high[step * 32]);
    for (int lane = 0; lane < kPanelRows; ++lane) sums[lane] += codes[c][lane] * value;
    if (column % kUnit == 0) x_sum += bytes.sums[unit + r];
  }
  const std::byte* const scales = group + code_bytes(format);
  for (int lane = 0; lane < kPanelRows; ++lane) {
    acc[lane] = std::fma(static_cast<float>(sums[lane]), panel_number(format.numbers, scales, lane), acc[lane]);
    if (format.affine) acc[lane] = std::fma(panel_number(format.numbers, scales + numbers_bytes(format), lane), x_sum, acc[lane]);
  }
}

// A segment's part of one row joins its sums.
void add_segment(const Activations& x, int row, int segment, float (&acc)[kPanelRows], float (&sums)[kPanelRows]) {
  const std::ptrdiff_t block_rows = x.bytes.block_rows;
  const float scale = x.bytes.scales[(row / block_rows * x.segments() + segment) * block_rows + row % block_rows];
  for (int lane = 0; lane < kPanelRows; ++lane) {
    sums[lane] = std::fma(acc[lane], scale, sums[lane]);
    acc[lane] = 0;
  }
}

constexpr int kRowsAtOnce = 8;  // that share an unpacked group

void quantized_rows(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, int panel, int panels, int row,
                    int rows) {
  float sums[kRowsAtOnce][2][kPanelRows] = {};
  const int segment_groups = kSegmentUnits * kUnit / weights.format.group;
  for (int i = 0; i < panels; ++i) {
    const std::byte* group = weights.panel(panel + i);
    float acc[kRowsAtOnce][kPanelRows] = {};
    for (int g = 0; g < weights.groups; ++g, group += panel_group_bytes(weights.format)) {
      GroupCodes codes;
      if (is_nibbles(weights.format)) {
        unpack_nibbles(group, weights.format, codes);
      } else {
        unpack_bytes(group, weights.format, codes);
      }
      for (int r = 0; r < rows; ++r) add_group(weights, group, codes, x, row + r, g, acc[r]);
      if ((g + 1) % segment_groups != 0 && g + 1 < weights.groups) continue;
      for (int r = 0; r < rows; ++r) add_segment(x, row + r, g / segment_groups, acc[r], sums[r][i]);
    }
  }
  for (int r = 0; r < rows; ++r) finish(weights, out, row + r, panel, panels, sums[r]);
}

void dense_panel(const PanelMatrix& weights, const float* x, int panel, float (&sums)[kPanelRows]) {
  const std::byte* column = weights.panel(panel);
  for (float& sum : sums) sum = 0;
  for (std::int32_t c = 0; c < weights.cols; ++c, column += panel_group_bytes(weights.format)) {
    for (int lane = 0; lane < kPanelRows; ++lane)
      sums[lane] = std::fma(panel_number(weights.format.numbers, column, lane), x[c], sums[lane]);
  }
}

}  // namespace

void linear_quantized_portable(const PanelMatrix& weights, const Activations& x, const LinearOutput& out,
                               const LinearShare& share) {
  for (int p = share.panel_begin; p < share.panel_end; p += 2) {
    const int panels = share.panel_end - p < 2 ? 1 : 2;
    for (int row = 0; row < x.rows; row += kRowsAtOnce) {
      quantized_rows(weights, x, out, p, panels, row, x.rows - row < kRowsAtOnce ? x.rows - row : kRowsAtOnce);
    }
  }
}

void linear_dense_portable(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  for (int p = share.panel_begin; p < share.panel_end; p += 2) {
    const int panels = share.panel_end - p < 2 ? 1 : 2;
    for (int row = 0; row < x.rows; ++row) {
      float sums[2][kPanelRows] = {};
      for (int i = 0; i < panels; ++i) dense_panel(weights, x.floats + std::ptrdiff_t{row} * x.cols, p + i, sums[i]);
      finish(weights, out, row, p, panels, sums);
    }
  }
}

}  // namespace linnet::cpu
