// The sets of machines for which there is nothing but plain C++ yet.
#include "backends/cpu/kernels/kernels_portable.h"

namespace linnet::cpu {

std::span<const KernelSet* const> runnable_kernel_sets() {
  static constexpr const KernelSet* kSets[] = {&kPortableKernels};
  return kSets;
}

}  // namespace linnet::cpu
