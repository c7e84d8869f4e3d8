#include "backends/cpu/kernels/elementwise.h"

#include <cmath>

#include "backends/cpu/kernels/kernel_set.h"
#include "base/check.h"

namespace linnet::cpu {

void rms_norm(const KernelSet& kernels, const RmsNormTask& task, int row_begin, int row_end) {
  CHECK(task.x != nullptr && task.weight != nullptr && task.out != nullptr && task.cols >= 1 && row_begin <= row_end);
  kernels.rms_norm(task, row_begin, row_end);
}

void swiglu(const KernelSet& kernels, const float* gate, const float* up, float* out, std::int64_t count) {
  kernels.swiglu(gate, up, out, count);
}

void exponential(const KernelSet& kernels, const float* x, float* out, std::int64_t count) { kernels.exponential(x, out, count); }

void rope(const KernelSet& kernels, const RopeTask& task, int row_begin, int row_end) {
  CHECK(task.x != nullptr && task.cos != nullptr && task.sin != nullptr && task.head_dim >= 2 && task.head_dim % 2 == 0 &&
        row_begin <= row_end);
  kernels.rope(task, row_begin, row_end);
}

void rope_angles(double theta, const float* divisors, std::int32_t head_dim, std::int64_t position, float* cos, float* sin) {
  CHECK(theta > 0 && head_dim >= 2 && head_dim % 2 == 0);
  for (std::int32_t i = 0; i < head_dim / 2; ++i) {
    const double frequency =
        std::pow(theta, -2.0 * i / head_dim) / (divisors == nullptr ? 1.0 : static_cast<double>(divisors[i]));
    const double angle = static_cast<double>(position) * frequency;
    cos[i] = static_cast<float>(std::cos(angle));
    sin[i] = static_cast<float>(std::sin(angle));
  }
}

void add(const KernelSet& kernels, const float* x, float* y, std::int64_t count) { kernels.add(x, y, count); }

}  // namespace linnet::cpu
