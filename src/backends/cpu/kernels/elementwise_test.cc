#include "backends/cpu/kernels/elementwise.h"

#include <limits>

#include "backends/cpu/kernels/kernel_test_data.h"
#include "model/rope.h"

namespace linnet::cpu {
namespace {

std::vector<float> exponentials(const KernelSet& kernels, const std::vector<float>& x) {
  const GuardedBytes out(x.size() * 4);
  exponential(kernels, x.data(), out.floats(), static_cast<std::int64_t>(x.size()));
  return {out.floats(), out.floats() + x.size()};
}

TEST(Elementwise, ExponentialIsWithinTwoUlpAndTheSameInEverySet) {
  std::vector<float> x;
  for (int i = -8700; i <= 8872; ++i) x.push_back(static_cast<float>(i) * 0.01F);
  for (int i = 0; i < 2000; ++i) x.push_back(std::ldexp(i % 2 == 0 ? 1.0F : -1.0F, -i / 16));
  std::vector<float> first;
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const auto y = exponentials(*kernels, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp(static_cast<double>(x[i]));
      ASSERT_NEAR(expected, static_cast<double>(y[i]), expected * 2.4e-7) << kernels->name << " " << x[i];
    }
    if (first.empty()) first = y;
    EXPECT_TRUE(same_bits(first, y)) << kernels->name;
  }
}

TEST(Elementwise, ExponentialAtItsEnds) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const auto y = exponentials(*kernels, {-inf, -1000.0F, -87.5F, 0.0F, -0.0F, 88.73F, 1000.0F, inf, std::nanf("")});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(y[static_cast<std::size_t>(i)], 0.0F);
    EXPECT_EQ(y[3], 1.0F);
    EXPECT_EQ(y[4], 1.0F);
    for (int i = 5; i < 8; ++i) EXPECT_EQ(y[static_cast<std::size_t>(i)], inf);
    EXPECT_TRUE(std::isnan(y[8]));
  }
}

TEST(Elementwise, SwigluIsCloseToDoubleArithmeticAndTheSameInEverySet) {
  const auto gate = random_rows(1, 1003, 1), up = random_rows(1, 1003, 2);
  std::vector<float> first;
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const GuardedBytes out(1003 * 4);
    swiglu(*kernels, gate.data(), up.data(), out.floats(), 1003);
    for (std::size_t i = 0; i < 1003; ++i) {
      const double g = static_cast<double>(gate[i]);
      const double expected = g / (1 + std::exp(-g)) * static_cast<double>(up[i]);
      ASSERT_NEAR(expected, static_cast<double>(out.floats()[i]), std::fabs(expected) * 5e-7);
    }
    const std::vector<float> y(out.floats(), out.floats() + 1003);
    if (first.empty()) first = y;
    EXPECT_TRUE(same_bits(first, y)) << kernels->name;
  }
}

struct RopeCase {
  int head_dim;
  bool interleaved;
  int dims;
};

TEST(Elementwise, RopeRotatesPairsByTheirAngles) {
  for (const RopeCase c : {RopeCase{64, true, 64}, RopeCase{64, false, 64}, RopeCase{2, true, 2}, RopeCase{2, false, 2},
                           RopeCase{80, true, 80}, RopeCase{80, false, 80}, RopeCase{36, false, 36}, RopeCase{36, true, 36},
                           RopeCase{64, true, 32}, RopeCase{96, false, 40}, RopeCase{80, true, 6}, RopeCase{128, false, 2}}) {
    const RopeTable table = rope_table({.dims = c.dims}, c.head_dim);
    const int heads = 3, rows = 4, half = c.dims / 2, width = heads * c.head_dim;
    const auto x = random_rows(rows, width, 3);
    std::vector<float> cos(static_cast<std::size_t>(rows * half)), sin(cos.size()), first;
    for (int r = 0; r < rows; ++r) rope_angles(table, 5 + 1000 * r, cos.data() + r * half, sin.data() + r * half);
    for (const KernelSet* const kernels : runnable_kernel_sets()) {
      const GuardedBytes memory(x.size() * 4);
      std::memcpy(memory.data(), x.data(), x.size() * 4);
      rope(*kernels, {memory.floats(), width, heads, c.head_dim, c.dims, c.interleaved, cos.data(), sin.data()}, 0, rows);
      for (int r = 0; r < rows; ++r) {
        for (int i = 0; i < heads * half; ++i) {
          const int base = r * width + i / half * c.head_dim, d = i % half;
          const auto a = static_cast<std::size_t>(base + (c.interleaved ? 2 * d : d)),
                     b = a + static_cast<std::size_t>(c.interleaved ? 1 : half);
          const double angle = (5 + 1000 * r) * std::pow(10000.0, -2.0 * d / c.dims);
          const double xa = static_cast<double>(x[a]), xb = static_cast<double>(x[b]);
          ASSERT_NEAR(xa * std::cos(angle) - xb * std::sin(angle), static_cast<double>(memory.floats()[a]), 2e-6)
              << kernels->name << " " << c.head_dim;
          ASSERT_NEAR(xb * std::cos(angle) + xa * std::sin(angle), static_cast<double>(memory.floats()[b]), 2e-6)
              << kernels->name << " " << c.head_dim;
        }
      }
      const std::vector<float> y(memory.floats(), memory.floats() + x.size());
      for (int i = 0; i < rows * width; ++i) {  // beyond the pairs nothing changes
        if (i % c.head_dim < c.dims) continue;
        ASSERT_EQ(x[static_cast<std::size_t>(i)], y[static_cast<std::size_t>(i)]) << kernels->name << " " << c.dims;
      }
      if (first.empty()) first = y;
      EXPECT_TRUE(same_bits(first, y)) << kernels->name << " " << c.head_dim;
    }
  }
}

TEST(Elementwise, AddIsPlainAddition) {
  const auto x = random_rows(1, 77, 4), y = random_rows(1, 77, 5);
  std::vector<float> expected(77);
  for (std::size_t i = 0; i < 77; ++i) expected[i] = y[i] + x[i];
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const GuardedBytes memory(77 * 4);
    std::memcpy(memory.data(), y.data(), 77 * 4);
    add(*kernels, x.data(), memory.floats(), 77);
    EXPECT_TRUE(same_bits(expected, {memory.floats(), memory.floats() + 77})) << kernels->name;
  }
}

}  // namespace
}  // namespace linnet::cpu
