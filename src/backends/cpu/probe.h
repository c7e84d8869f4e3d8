// What this machine gives at this moment: the limits that speeds are stated against.
#pragma once

#include <string_view>

namespace linnet::cpu {

struct MachineProbe {
  double bandwidth_gb_s = 0;  // plain reading by all threads
  double matrix_tflop_s = 0;  // the matrix units (or vectors) of all threads, out of registers
};

// Takes about a fifth of a second on `threads` pinned threads of its own. `kernels`: the kernel set whose units are measured.
// `bytes`: how much a decode step reads, since what fits the last-level cache is read faster.
MachineProbe probe_machine(int threads, std::string_view kernels, double bytes);

}  // namespace linnet::cpu
