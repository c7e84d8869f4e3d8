// Row-wise words in plain C++, in the order of operations that all sets share.
#include <cmath>
#include <cstddef>

#include "backends/cpu/kernels/kernels_portable.h"

namespace linnet::cpu {
namespace {

// e^x = 2^n e^r with r in +-ln(2)/2 and Taylor's polynomial of degree 7 (relative error 6e-9).
float exponential_of(float x) {
  if (std::isnan(x)) return x;
  if (x < -87.0F) return 0.0F;
  if (x > 88.72283F) return HUGE_VALF;
  const float n = std::nearbyint(x * 1.44269504F);
  float r = std::fma(-n, 0.693145752F, x);
  r = std::fma(-n, 1.42860677e-6F, r);
  float p = 1.0F / 5040.0F;
  for (const float c : {1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F, 1.0F, 1.0F}) p = std::fma(p, r, c);
  const auto exponent = static_cast<std::int32_t>(n);
  const std::int32_t half = exponent >> 1;  // 2^n in two factors: 2^128 alone is no float
  return std::ldexp(std::ldexp(p, half), exponent - half);
}

void rotate(float& a, float& b, float cos, float sin) {
  const float first = std::fma(a, cos, -(b * sin));
  b = std::fma(b, cos, a * sin);
  a = first;
}

}  // namespace

float silu_product_portable(float gate, float up) { return gate / (1.0F + exponential_of(0.0F - gate)) * up; }

void swiglu_portable(const float* gate, const float* up, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = silu_product_portable(gate[i], up[i]);
}

void exponential_portable(const float* x, float* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = exponential_of(x[i]);
}

void rope_portable(const RopeTask& task, int row_begin, int row_end) {
  const std::int32_t half = task.dims / 2;
  for (int row = row_begin; row < row_end; ++row) {
    const float* const cos = task.cos + std::ptrdiff_t{row} * half;
    const float* const sin = task.sin + std::ptrdiff_t{row} * half;
    for (std::int32_t h = 0; h < task.heads; ++h) {
      float* const head = task.x + row * task.stride + std::ptrdiff_t{h} * task.head_dim;
      for (std::int32_t i = 0; i < half; ++i) {
        if (task.interleaved) {
          rotate(head[2 * i], head[2 * i + 1], cos[i], sin[i]);
        } else {
          rotate(head[i], head[i + half], cos[i], sin[i]);
        }
      }
    }
  }
}

void add_portable(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = y[i] + x[i];
}

}  // namespace linnet::cpu
