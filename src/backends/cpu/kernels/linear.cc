#include "backends/cpu/kernels/linear.h"

#include "backends/cpu/kernels/kernel_set.h"
#include "base/check.h"

namespace linnet::cpu {

void linear(const KernelSet& kernels, const PanelMatrix& weights, const Activations& x, const LinearOutput& out,
            const LinearShare& share) {
  CHECK(x.cols == weights.cols && weights.data != nullptr);
  CHECK(share.panel_begin >= 0 && share.panel_begin <= share.panel_end && share.panel_end <= weights.panels);
  if (out.epilogue == Epilogue::kSwiglu) CHECK(share.panel_begin % 2 == 0 && share.panel_end % 2 == 0 && weights.panels % 2 == 0);
  if (x.rows == 0 || share.panel_begin == share.panel_end) return;
  CHECK(out.y != nullptr && share.scratch != nullptr && reinterpret_cast<std::uintptr_t>(share.scratch) % 64 == 0);
  if (!is_quantized(weights.format)) {
    CHECK_MSG(x.floats != nullptr, "activations were made without the form that this matrix reads");
    kernels.linear_dense(weights, x, out, share);
    return;
  }
  CHECK_MSG(x.bytes && x.units * kUnit >= weights.groups * weights.format.group,
            "activations were made without the form that this matrix reads");
  kernels.linear_quantized(weights, x, out, share);
}

LinearShare linear_share(const PanelMatrix& weights, int index, int count, std::byte* scratch) {
  CHECK(count >= 1 && index >= 0 && index < count);
  const std::int64_t pairs = (weights.panels + 1) / 2;
  const auto begin = static_cast<std::int32_t>(pairs * index / count * 2);
  const auto end = static_cast<std::int32_t>(pairs * (index + 1) / count * 2);
  return {begin, end < weights.panels ? end : weights.panels, scratch};
}

}  // namespace linnet::cpu
