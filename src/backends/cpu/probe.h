// What this machine gives at this moment: the limits that speeds are stated against.
#pragma once

namespace linnet {

struct MachineProbe {
  double bandwidth_gb_s = 0;   // plain reading of `bytes` by all threads
  double matrix_tflop_s = 0;   // the matrix units (or vectors) of all threads, out of registers and L1
};

// Takes about a tenth of a second on `threads` threads of its own. `bytes`: how much a decode step reads, since what fits the
// last-level cache is read faster.
MachineProbe probe_machine(int threads, double bytes);

}  // namespace linnet
