// Repacking for AVX2: the portable layout of staged columns, whose unpacking the compiler vectorizes.
#include "backends/cpu/kernels/kernels_portable.h"
#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/repack_stage.h"

namespace linnet::cpu {

void repack_avx2(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range) {
  if (is_quantized(into.format)) return repack_staged(source, into, place, range, put_unit);
  repack_portable(source, into, place, range);
}

}  // namespace linnet::cpu
