#include "backends/cpu/kernels/elementwise.h"

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
  CHECK(task.x != nullptr && task.cos != nullptr && task.sin != nullptr && task.dims >= 2 && task.dims % 2 == 0 &&
        task.dims <= task.head_dim && row_begin <= row_end);
  kernels.rope(task, row_begin, row_end);
}

void add(const KernelSet& kernels, const float* x, float* y, std::int64_t count) { kernels.add(x, y, count); }

}  // namespace linnet::cpu
