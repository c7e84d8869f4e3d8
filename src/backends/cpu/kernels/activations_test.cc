#include "backends/cpu/kernels/activations.h"

#include "backends/cpu/kernels/kernel_test_data.h"

namespace linnet::cpu {
namespace {

// Floats, and units as groups of 32 have them.
ActivationForms both_forms(int cols) { return {.floats = true, .units = panel_groups(cols, 32)}; }

// The integer of a column.
std::int32_t byte_value(const Activations& x, int row, int col) {
  const std::ptrdiff_t rows = x.bytes.block_rows;
  const std::ptrdiff_t at = (row / rows * x.units + col / 32) * rows;
  const std::byte* const high = x.bytes.codes + (2 * at + row % rows) * 32 + col % 32;
  return 256 * static_cast<std::int8_t>(*high) + static_cast<std::int8_t>(high[rows * 32]);
}

float scale_of(const Activations& x, int row, int segment) {
  const std::ptrdiff_t rows = x.bytes.block_rows;
  return x.bytes.scales[(row / rows * x.segments() + segment) * rows + row % rows];
}

TEST(Activations, RoundsToTheNearestOf16Bits) {
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    for (const int cols : {1, 31, 32, 33, 96, 576, 1000}) {
      for (const int rows : {1, 3, 4, 13, 40}) {
        const auto x = random_rows(rows, cols, 1);
        const TestActivations a(*kernels, both_forms(cols), x.data(), rows, cols);
        for (int r = 0; r < rows; ++r) {
          for (int c = 0; c < a.x.units * kUnit; ++c) {
            const float scale = scale_of(a.x, r, c / 256);
            const std::int32_t value = byte_value(a.x, r, c);
            if (c >= cols) {
              ASSERT_EQ(value, 0);
              continue;
            }
            const float original = x[static_cast<std::size_t>(r * cols + c)];
            ASSERT_LE(std::abs(value), 32639);
            ASSERT_NEAR(original, static_cast<float>(value) * scale, scale * 0.502F) << kernels->name;
            ASSERT_EQ(a.x.floats[r * cols + c], original);
          }
        }
      }
    }
  }
}

// An outlier coarsens its own segment only.
TEST(Activations, SegmentsHaveScalesOfTheirOwn) {
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    std::vector<float> x(600, 1.0F);
    x[258] = 1000.0F;
    const TestActivations a(*kernels, both_forms(600), x.data(), 1, 600);
    EXPECT_EQ(scale_of(a.x, 0, 0), 1.0F / 32639.0F) << kernels->name;
    EXPECT_EQ(scale_of(a.x, 0, 1), 1000.0F / 32639.0F) << kernels->name;
    EXPECT_EQ(scale_of(a.x, 0, 2), 1.0F / 32639.0F) << kernels->name;
    EXPECT_EQ(byte_value(a.x, 0, 255), 32639);
    EXPECT_EQ(byte_value(a.x, 0, 259), 33);
  }
}

TEST(Activations, SumsAreThoseOfTheIntegers) {
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const auto x = random_rows(21, 200, 2);
    const TestActivations a(*kernels, both_forms(200), x.data(), 21, 200);
    for (int r = 0; r < 21; ++r) {
      const ActivationBlocks& b = a.x.bytes;
      for (int u = 0; u < a.x.units; ++u) {
        std::int32_t sums[2] = {};
        for (int c = 0; c < kUnit; ++c) sums[c / 16] += byte_value(a.x, r, u * kUnit + c);
        const int first = (r / b.block_rows * a.x.units + u) * b.block_rows;
        ASSERT_EQ(b.sums[first + r % b.block_rows], static_cast<float>(sums[0] + sums[1]));
        for (int half = 0; half < 2; ++half)
          ASSERT_EQ(b.negated[2 * first + half * b.block_rows + r % b.block_rows], -sums[half]);
      }
    }
  }
}

TEST(Activations, RowsBeyondTheLastAreZero) {
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const auto x = random_rows(37, 64, 3);
    const TestActivations a(*kernels, both_forms(64), x.data(), 37, 64);
    for (int r = 37; r < a.x.bytes.blocks * a.x.bytes.block_rows; ++r) {
      for (int c = 0; c < a.x.units * kUnit; ++c) ASSERT_EQ(byte_value(a.x, r, c), 0);
    }
  }
}

// Rows of a batch in two ranges, against each row alone, in every set: scale, integers and norm.
TEST(Activations, ARowsBitsDependOnThatRowAlone) {
  const int cols = 330, rows = 29;
  const auto x = random_rows(rows, cols, 4), weight = random_rows(1, cols, 5);
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const GuardedBytes memory(activations_bytes(rows, cols)), alone_memory(activations_bytes(1, cols));
    const Activations batch = make_activations(*kernels, both_forms(cols), rows, cols, memory.data());
    rms_norm_round(*kernels, {x.data(), cols}, weight.data(), 1e-5F, batch, 11, rows);
    rms_norm_round(*kernels, {x.data(), cols}, weight.data(), 1e-5F, batch, 0, 11);
    const KernelSet& portable = *runnable_kernel_sets().back();
    for (int r = 0; r < rows; ++r) {
      const Activations alone = make_activations(portable, both_forms(cols), 1, cols, alone_memory.data());
      rms_norm_round(portable, {x.data() + r * cols, cols}, weight.data(), 1e-5F, alone, 0, 1);
      for (int s = 0; s < batch.segments(); ++s) ASSERT_EQ(scale_of(alone, 0, s), scale_of(batch, r, s)) << kernels->name;
      for (int c = 0; c < cols; ++c) {
        ASSERT_EQ(byte_value(alone, 0, c), byte_value(batch, r, c)) << kernels->name;
        ASSERT_EQ(alone.floats[c], batch.floats[r * cols + c]) << kernels->name;
      }
    }
  }
}

TEST(Activations, NormIsCloseToDoubleArithmetic) {
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    for (const int cols : {1, 16, 64, 65, 576, 4099}) {
      const auto x = random_rows(2, cols, 6), weight = random_rows(1, cols, 7);
      const GuardedBytes out(static_cast<std::size_t>(2 * cols) * 4);
      rms_norm(*kernels, {x.data(), cols, weight.data(), 1e-6F, out.floats(), cols, cols}, 0, 2);
      for (int r = 0; r < 2; ++r) {
        double sum = 0;
        for (int c = 0; c < cols; ++c) sum += std::pow(static_cast<double>(x[static_cast<std::size_t>(r * cols + c)]), 2);
        for (int c = 0; c < cols; ++c) {
          const double expected = static_cast<double>(x[static_cast<std::size_t>(r * cols + c)]) / std::sqrt(sum / cols + 1e-6) *
                                  static_cast<double>(weight[static_cast<std::size_t>(c)]);
          ASSERT_NEAR(expected, static_cast<double>(out.floats()[r * cols + c]), std::fabs(expected) * 1e-6 + 1e-12)
              << kernels->name;
        }
      }
    }
  }
}

TEST(Activations, SpecialRows) {
  struct Case {
    const char* name;
    float value;
    bool nan;
  };
  constexpr Case kCases[] = {{"zero", 0.0F, false},
                             {"negative zero", -0.0F, false},
                             {"tiny", 0x1p-140F, false},
                             {"below", 0x1p-81F, false},
                             {"infinite", HUGE_VALF, true},
                             {"negative infinite", -HUGE_VALF, true},
                             {"nan", std::bit_cast<float>(0x7fc00001U), true},
                             {"signalling", std::bit_cast<float>(0xff800001U), true}};
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    for (const Case& c : kCases) {
      std::vector<float> x(5 * 320, 0.0F);
      x[2 * 320 + 40] = c.value;
      const TestActivations a(*kernels, both_forms(320), x.data(), 5, 320);
      for (int r = 0; r < 5; ++r) {
        EXPECT_EQ(std::isnan(scale_of(a.x, r, 0)), c.nan && r == 2) << kernels->name << " " << c.name;
        if (!c.nan) {
          EXPECT_EQ(scale_of(a.x, r, 0), 0.0F) << c.name;
        }
        EXPECT_EQ(scale_of(a.x, r, 1), 0.0F) << c.name;
        for (int col = 0; col < 320; ++col) EXPECT_EQ(byte_value(a.x, r, col), 0) << c.name;
      }
    }
    // The largest and smallest that count.
    for (const float value : {std::bit_cast<float>(0x7f7fffffU), 0x1p-80F}) {
      std::vector<float> x(64, value);
      x[1] = -value;
      const TestActivations a(*kernels, both_forms(64), x.data(), 1, 64);
      EXPECT_EQ(byte_value(a.x, 0, 0), 32639);
      EXPECT_EQ(byte_value(a.x, 0, 1), -32639);
      EXPECT_EQ(scale_of(a.x, 0, 0), value / 32639.0F);
    }
  }
}

TEST(Activations, FitTheirBound) {
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    for (const int cols : {1, 33, 576}) {
      for (int rows = 1; rows <= 530; rows += rows < 70 ? 1 : 23) {
        std::vector<std::byte> memory(activations_bytes(rows, cols) + 64);
        auto* const base = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
        const Activations x = make_activations(*kernels, both_forms(cols), rows, cols, base);
        const auto entries = static_cast<std::size_t>(x.bytes.blocks) * static_cast<std::size_t>(x.bytes.block_rows) *
                             static_cast<std::size_t>(x.units);
        ASSERT_LE(reinterpret_cast<std::byte*>(x.bytes.negated + 2 * entries), base + activations_bytes(rows, cols));
        ASSERT_GE(x.bytes.blocks * x.bytes.block_rows, rows);
      }
    }
  }
}

}  // namespace
}  // namespace linnet::cpu
