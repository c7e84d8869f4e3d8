// How fast each kernel runs by itself, to be stated beside probe.h's limits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace linnet::cpu {

struct KernelSpeed {
  std::string kernel;  // "linear Q4_1", "norm and rounding"
  int rows = 0;        // tokens at once
  double seconds = 0;  // median of three
  double bytes = 0;    // of weights, keys and values read, or rows read and written
  double flops = 0;

  double gb_s() const { return bytes / seconds / 1e9; }
  double tflop_s() const { return flops / seconds / 1e12; }
};

// Linears by format at 1, 8, 64 and 512 rows, attention of decode and prefill, norm with rounding: on random numbers in the
// shapes of a model of 1.5B weights (layers of 2048 by 2048, 32 heads over 8 of 64, 4,096 tokens of context), on `threads`
// threads of a pool of its own. Weights and KV are walked through as a step does: what comes is not in L2. Takes some seconds.
std::vector<KernelSpeed> measure_kernels(int threads, std::string_view kernels);

}  // namespace linnet::cpu
