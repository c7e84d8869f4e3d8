// Linear layers in plain C++: the specification of the other sets. Quantized results are the same bits as theirs.
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/kernels_portable.h"
#include "weights/half.h"

namespace linnet::cpu {
namespace {

// Sums of two neighbouring panels of one row on their way into y.
void finish(const PanelMatrix& weights, const LinearOutput& out, int row, int panel, int panels,
            const float (&sums)[2][kPanelRows]) {
  const bool swiglu = out.epilogue == Epilogue::kSwiglu;
  const std::int32_t columns = swiglu ? weights.rows / 2 : weights.rows;
  for (int i = 0; i < (swiglu ? 1 : panels); ++i) {
    const std::int32_t column = (swiglu ? panel / 2 : panel + i) * kPanelRows;
    float* const y = out.y + row * out.stride + column;
    for (int lane = 0; lane < kPanelRows && column + lane < columns; ++lane) {
      const float value = sums[i][lane];
      switch (out.epilogue) {
        case Epilogue::kStore:
          y[lane] = value;
          break;
        case Epilogue::kAdd:
          y[lane] = y[lane] + value;
          break;
        case Epilogue::kSwiglu:
          y[lane] = silu_product_portable(value, sums[1][lane]);
          break;
      }
    }
  }
}

float half_at(const std::byte* halves, int index) {
  std::uint16_t half;
  std::memcpy(&half, halves + index * 2, 2);
  return half_to_float(half);
}

// Codes of a group, [column][lane].
void unpack(const std::byte* group, PanelFormat format, std::int32_t (&codes)[kGroup][kPanelRows]) {
  if (is_nibbles(format)) {
    const std::int32_t middle = is_affine(format) ? 0 : 8;
    for (int i = 0; i < 4; ++i) {
      for (int lane = 0; lane < kPanelRows; ++lane) {
        for (int j = 0; j < 4; ++j) {
          const auto byte = static_cast<std::int32_t>(group[i * 64 + lane * 4 + j]);
          codes[4 * i + j][lane] = (byte & 15) - middle;
          codes[16 + 4 * i + j][lane] = (byte >> 4) - middle;
        }
      }
    }
    return;
  }
  for (int i = 0; i < 8; ++i) {
    for (int lane = 0; lane < kPanelRows; ++lane) {
      for (int j = 0; j < 4; ++j) codes[4 * i + j][lane] = static_cast<std::int8_t>(group[i * 64 + lane * 4 + j]);
    }
  }
}

// acc += the group's part of one row.
void add_group(const PanelMatrix& weights, const std::byte* group, const std::int32_t (&codes)[kGroup][kPanelRows],
               const Activations& x, int row, int g, float (&acc)[kPanelRows]) {
  const ActivationBlocks& bytes = x.bytes;
  const std::ptrdiff_t at = (std::ptrdiff_t{row / bytes.block_rows} * x.groups + g) * bytes.block_rows;
  const std::ptrdiff_t r = row % bytes.block_rows;
  const std::byte* const high = bytes.codes + (2 * at + r) * 32;
  const std::byte* const low = high + std::ptrdiff_t{bytes.block_rows} * 32;
  std::int32_t sums[kPanelRows] = {};
  for (int c = 0; c < kGroup; ++c) {
    const std::int32_t value = 128 * static_cast<std::int8_t>(high[c]) + static_cast<std::int8_t>(low[c]);
    for (int lane = 0; lane < kPanelRows; ++lane) sums[lane] += codes[c][lane] * value;
  }
  const std::byte* const scales = group + (is_nibbles(weights.format) ? 256 : 512);
  for (int lane = 0; lane < kPanelRows; ++lane) {
    acc[lane] = std::fma(static_cast<float>(sums[lane]), half_at(scales, lane), acc[lane]);
    if (is_affine(weights.format)) acc[lane] = std::fma(half_at(scales + 32, lane), bytes.sums[at + r], acc[lane]);
  }
}

constexpr int kRowsAtOnce = 8;  // that share an unpacked group

void quantized_rows(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, int panel, int panels, int row,
                    int rows) {
  float sums[kRowsAtOnce][2][kPanelRows] = {};
  for (int i = 0; i < panels; ++i) {
    const std::byte* group = weights.panel(panel + i);
    for (int g = 0; g < x.groups; ++g, group += panel_unit_bytes(weights.format)) {
      std::int32_t codes[kGroup][kPanelRows];
      unpack(group, weights.format, codes);
      for (int r = 0; r < rows; ++r) add_group(weights, group, codes, x, row + r, g, sums[r][i]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (auto& panel_sums : sums[r]) {
      for (float& sum : panel_sums) sum = sum * x.scales[row + r];
    }
    finish(weights, out, row + r, panel, panels, sums[r]);
  }
}

float dense_weight(const std::byte* column, PanelFormat format, int lane) {
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

void dense_panel(const PanelMatrix& weights, const float* x, int panel, float (&sums)[kPanelRows]) {
  const std::byte* column = weights.panel(panel);
  for (float& sum : sums) sum = 0;
  for (std::int32_t c = 0; c < weights.cols; ++c, column += panel_unit_bytes(weights.format)) {
    for (int lane = 0; lane < kPanelRows; ++lane)
      sums[lane] = std::fma(dense_weight(column, weights.format, lane), x[c], sums[lane]);
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
