// Repacking in plain C++.
#include <cstring>

#include "backends/cpu/kernels/kernels_portable.h"
#include "backends/cpu/kernels/repack_source.h"

namespace linnet::cpu {
namespace {

// One block of 32 weights into lane `lane` of a group.
void put_block(const std::byte* block, DType dtype, int lane, std::byte* group) {
  const QuantSource source = quant_source(dtype);
  const bool nibbles = dtype == DType::kQ4_0 || dtype == DType::kQ4_1;
  const std::byte* const codes = block + source.codes;
  std::byte bytes[kGroup];
  if (source.fifth_bits != 0) {
    std::uint32_t bits;
    std::memcpy(&bits, block + source.fifth_bits, 4);
    for (int c = 0; c < kGroup; ++c) {
      const int nibble = c < 16 ? static_cast<int>(codes[c]) & 15 : static_cast<int>(codes[c - 16]) >> 4;
      const int code = nibble | static_cast<int>(bits >> c & 1U) << 4;
      bytes[c] = static_cast<std::byte>(source.affine ? code : code - 16);
    }
  } else {
    std::memcpy(bytes, codes, nibbles ? 16 : 32);
  }
  const int vectors = nibbles ? 4 : 8;
  for (int i = 0; i < vectors; ++i) std::memcpy(group + i * 64 + lane * 4, bytes + 4 * i, 4);
  std::byte* const scales = group + vectors * 64;
  std::memcpy(scales + lane * 2, block, 2);
  if (source.affine) std::memcpy(scales + 32 + lane * 2, block + 2, 2);
}

void repack_quantized_panel(const Tensor& source, std::int64_t first_row, const PanelMatrix& into, std::byte* to) {
  const std::size_t unit = panel_unit_bytes(into.format);
  const std::int64_t groups = source.cols / kGroup;
  const std::int64_t block_bytes = quant_source(source.dtype).block_bytes;
  for (int lane = 0; lane < kPanelRows && first_row + lane < source.rows; ++lane) {
    const std::byte* block = source.data.data() + (first_row + lane) * groups * block_bytes;
    for (std::int64_t g = 0; g < groups; ++g, block += block_bytes)
      put_block(block, source.dtype, lane, to + static_cast<std::size_t>(g) * unit);
  }
}

void repack_dense_panel(const Tensor& source, std::int64_t first_row, const PanelMatrix& into, std::byte* to) {
  const std::size_t unit = panel_unit_bytes(into.format);
  const std::size_t size = unit / kPanelRows;
  for (std::size_t lane = 0; lane < kPanelRows && first_row + static_cast<std::int64_t>(lane) < source.rows; ++lane) {
    const auto cols = static_cast<std::size_t>(source.cols);
    const std::byte* const from = source.data.data() + (static_cast<std::size_t>(first_row) + lane) * cols * size;
    for (std::size_t c = 0; c < cols; ++c) std::memcpy(to + c * unit + lane * size, from + c * size, size);
  }
}

}  // namespace

void repack_portable(const Tensor& source, const PanelMatrix& into, PanelPlace place, int panel_begin, int panel_end) {
  for (int p = panel_begin; p < panel_end; ++p) {
    std::byte* const to = into.panel(place.first_panel + p * place.panel_step);
    std::memset(to, 0, into.panel_bytes);
    if (is_quantized(into.format)) {
      repack_quantized_panel(source, std::int64_t{p} * kPanelRows, into, to);
    } else {
      repack_dense_panel(source, std::int64_t{p} * kPanelRows, into, to);
    }
  }
}

}  // namespace linnet::cpu
