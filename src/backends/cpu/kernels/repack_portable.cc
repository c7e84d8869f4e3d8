// Repacking in plain C++.
#include <cstring>

#include "backends/cpu/kernels/kernels_portable.h"
#include "backends/cpu/kernels/repack_stage.h"

namespace linnet::cpu {
namespace {

void repack_dense_panel(const Tensor& source, std::int64_t first_row, const PanelMatrix& into, std::byte* to) {
  const auto step = static_cast<std::size_t>(panel_group_bytes(into.format));
  const std::size_t size = step / kPanelRows;
  std::memset(to, 0, into.panel_bytes);
  for (std::size_t lane = 0; lane < kPanelRows && first_row + static_cast<std::int64_t>(lane) < source.rows; ++lane) {
    const auto cols = static_cast<std::size_t>(source.cols);
    const std::byte* const from = source.data.data() + (static_cast<std::size_t>(first_row) + lane) * cols * size;
    for (std::size_t c = 0; c < cols; ++c) std::memcpy(to + c * step + lane * size, from + c * size, size);
  }
}

}  // namespace

void repack_portable(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range) {
  if (is_quantized(into.format)) return repack_staged(source, into, place, range, put_unit);
  for (int p = range.begin; p < range.end; ++p)
    repack_dense_panel(source, std::int64_t{p} * kPanelRows, into, into.panel(place.first_panel + p * place.panel_step));
}

}  // namespace linnet::cpu
