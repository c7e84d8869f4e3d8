// Row-wise f32 arithmetic between the linear layers. Sums have a fixed order, exp is our own polynomial: a row's bits depend on
// that row alone, and on neither threads nor the number of rows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace linnet::cpu {

struct KernelSet;

// out[r] = x[r] * weight / sqrt(mean(x[r]^2) + eps) for rows [row_begin, row_end); in place allowed.
struct RmsNormTask {
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  const float* weight = nullptr;  // [cols]
  float eps = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  std::int32_t cols = 0;
};
void rms_norm(const KernelSet& kernels, const RmsNormTask& task, int row_begin, int row_end);

// out[i] = gate[i] / (1 + exp(-gate[i])) * up[i].
void swiglu(const KernelSet& kernels, const float* gate, const float* up, float* out, std::int64_t count);

// out[i] = exp(x[i]) within 1 ulp or so: 0 below -104, infinity above 88.73; NaN stays NaN.
void exponential(const KernelSet& kernels, const float* x, float* out, std::int64_t count);

// Turns pairs of the first `dims` values of each head by the position's angles (Su et al. 2021), in place.
struct RopeTask {
  float* x = nullptr;  // row r, head h at x + r * stride + h * head_dim
  std::int64_t stride = 0;
  std::int32_t heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t dims = 0;       // even, at most head_dim
  bool interleaved = false;    // pairs (2i, 2i + 1); else (i, i + dims / 2)
  const float* cos = nullptr;  // row r at cos + r * dims / 2, as rope_angles (model/rope.h) gives them
  const float* sin = nullptr;
};
void rope(const KernelSet& kernels, const RopeTask& task, int row_begin, int row_end);

// y[i] = y[i] + x[i].
void add(const KernelSet& kernels, const float* x, float* y, std::int64_t count);

}  // namespace linnet::cpu
