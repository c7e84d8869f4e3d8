// Attention in plain C++ for any machine: what the other kernels are compared with. A product and its addition are rounded each.
#include <bit>
#include <cstdint>

#include "backends/cpu/kernels/attention_plain.h"

namespace linnet::cpu {
namespace {

// As half_to_float, for numbers that are finite, without branches.
float finite_half_to_float(std::uint16_t half) {
  const std::uint32_t magnitude = half & 0x7fffU;
  const std::uint32_t normal = (magnitude << 13) + 0x38000000U;
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(0x38800000U | magnitude << 13) - std::bit_cast<float>(0x38800000U));
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  return std::bit_cast<float>(sign | (magnitude >= 0x400U ? normal : small));
}

// 2^x for x <= 0; below -127 it is zero. NaN stays NaN.
float exp2_of(float x) {
  const float bounded = x > -127.0F ? x : -127.0F;
  auto whole = static_cast<std::int32_t>(bounded);
  if (static_cast<float>(whole) > bounded) --whole;
  const float r = bounded - static_cast<float>(whole);
  float p = 0.0018775766948238015F;
  p = p * r + 0.00898933969438076F;
  p = p * r + 0.05582631751894951F;
  p = p * r + 0.24015361070632935F;
  p = p * r + 0.6931530833244324F;
  p = p * r + 0.9999999403953552F;
  const float scaled = p * std::bit_cast<float>(static_cast<std::uint32_t>(whole + 127) << 23);
  if (x != x) return x;
  return x > -127.0F ? scaled : 0.0F;
}

// Four vectors of four floats, which the compilers know on every architecture.
struct PortableLanes {
  using Quad = float __attribute__((vector_size(16)));
  Quad at[4];

  static PortableLanes load(const float* address) {
    PortableLanes x;
    __builtin_memcpy(&x, address, sizeof x);
    return x;
  }
  static void store(float* address, const PortableLanes& x) { __builtin_memcpy(address, &x, sizeof x); }
  template <class F>
  static PortableLanes each_quad(F f) {
    return {{f(0), f(1), f(2), f(3)}};
  }
  template <class F>
  static PortableLanes each(const PortableLanes& x, F f) {
    float lanes[kLanes];
    store(lanes, x);
    for (float& lane : lanes) lane = f(lane);
    return load(lanes);
  }
  static PortableLanes splat(float x) {
    return each_quad([&](int) { return Quad{x, x, x, x}; });
  }
  static PortableLanes from_halves(const std::uint16_t* halves) {
    float lanes[kLanes];
    for (int i = 0; i < kLanes; ++i) lanes[i] = finite_half_to_float(halves[i]);
    return load(lanes);
  }
  static PortableLanes add(const PortableLanes& a, const PortableLanes& b) {
    return each_quad([&](int i) { return a.at[i] + b.at[i]; });
  }
  static PortableLanes subtract(const PortableLanes& a, const PortableLanes& b) {
    return each_quad([&](int i) { return a.at[i] - b.at[i]; });
  }
  static PortableLanes multiply(const PortableLanes& a, const PortableLanes& b) {
    return each_quad([&](int i) { return a.at[i] * b.at[i]; });
  }
  static PortableLanes divide(const PortableLanes& a, const PortableLanes& b) {
    return each_quad([&](int i) { return a.at[i] / b.at[i]; });
  }
  static PortableLanes multiply_add(const PortableLanes& acc, float factor, const PortableLanes& x) {
    return each_quad([&](int i) { return acc.at[i] + factor * x.at[i]; });
  }
  static PortableLanes maximum(const PortableLanes& a, const PortableLanes& b) {
    return each_quad([&](int i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; });
  }
  static PortableLanes magnitude(const PortableLanes& x) {
    return each(x, [](float lane) { return __builtin_fabsf(lane); });
  }
  static PortableLanes with_sign_of(const PortableLanes& sign, const PortableLanes& x) {
    float signs[kLanes];
    float lanes[kLanes];
    store(signs, sign);
    store(lanes, x);
    for (int i = 0; i < kLanes; ++i) lanes[i] = __builtin_copysignf(lanes[i], signs[i]);
    return load(lanes);
  }
  static PortableLanes exp2_not_positive(const PortableLanes& x) { return each(x, exp2_of); }
};

}  // namespace

AttentionKernel attention_kernel_portable(std::int32_t head_dim) { return plain_kernel<PortableLanes>(head_dim); }

}  // namespace linnet::cpu
