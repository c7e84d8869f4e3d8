// What an instruction set can read and multiply at most: measured, as limits for speeds to be stated against.
#pragma once

#include <cstddef>

namespace linnet::cpu {

struct ProbeKernels {
  void (*read)(const std::byte* data, std::size_t bytes) = nullptr;  // reads every byte once; `data` aligned to 64
  double (*multiply)(int rounds) = nullptr;                          // returns the operations done; operands stay in registers
};

ProbeKernels probe_kernels_portable();
ProbeKernels probe_kernels_avx2();
ProbeKernels probe_kernels_avx512();
ProbeKernels probe_kernels_amx();  // the process has asked for tiles

}  // namespace linnet::cpu
