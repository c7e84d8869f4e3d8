#include "backends/cpu/kernels/linear.h"

#include <algorithm>

#include "backends/cpu/kernels/kernel_test_data.h"

namespace linnet::cpu {
namespace {

std::string label(const KernelSet& kernels, const Tensor& w, int rows) {
  const TestFormat format = w.affine ? TestFormat(w.affine->bits, w.affine->group, w.affine->type) : TestFormat(w.dtype);
  return std::string(kernels.name) + " " + format.name() + " [" + std::to_string(w.rows) + ", " + std::to_string(w.cols) +
         "] rows " + std::to_string(rows);
}

constexpr int kSegment = 256;  // columns that share a scale of x

// A row of x as linear layers see it: integers, and the scale of each segment.
struct Rounded {
  std::vector<std::int64_t> values;
  std::vector<float> scales;
};
Rounded round_row(const float* x, int cols) {
  Rounded r;
  for (int begin = 0; begin < cols; begin += kSegment) {
    const int end = std::min(begin + kSegment, cols);
    float largest = 0;
    for (int c = begin; c < end; ++c) largest = std::max(largest, std::fabs(x[c]));
    r.scales.push_back(largest / 32639.0F);
    for (int c = begin; c < end; ++c) r.values.push_back(std::lrint(x[c] * (32639.0F / largest)));
  }
  return r;
}

// The canonical order, in 64-bit integers.
float oracle(const Tensor& w, std::int64_t row, const Rounded& x) {
  float acc = 0, y = 0;
  for (std::int64_t c = 0; c < w.cols;) {
    const TestWeight first = weight_at(w, row, c);
    std::int64_t sum = 0, x_sum = 0;
    for (const std::int64_t end = c + first.group; c < end; ++c) {
      sum += weight_at(w, row, c).code * x.values[static_cast<std::size_t>(c)];
      x_sum += x.values[static_cast<std::size_t>(c)];
    }
    acc = std::fma(static_cast<float>(sum), first.scale, acc);
    if (w.affine || TestFormat(w.dtype).affine()) acc = std::fma(first.bias, static_cast<float>(x_sum), acc);
    if (c % kSegment != 0 && c != w.cols) continue;
    y = std::fma(acc, x.scales[static_cast<std::size_t>((c - 1) / kSegment)], y);
    acc = 0;
  }
  return y;
}

struct Shape {
  int rows, cols;
};

TEST(Linear, EqualsIntegerOracleForEveryTypeShapeAndSet) {
  constexpr Shape kShapes[] = {{1, 32}, {15, 64}, {16, 32}, {17, 96}, {33, 160}, {50, 288}, {64, 576}, {31, 352}};
  constexpr int kRowsMax = 40;
  for (const TestFormat format : kQuantizedFormats) {
    for (const Shape shape : kShapes) {
      const int cols = format.fitting(shape.cols);
      const TestWeights w(format, shape.rows, cols, 1);
      const auto x = random_rows(kRowsMax, cols, 2);
      std::vector<float> expected;
      for (int r = 0; r < kRowsMax; ++r) {
        const Rounded rounded = round_row(x.data() + r * cols, cols);
        for (int n = 0; n < shape.rows; ++n) expected.push_back(oracle(w.tensor, n, rounded));
      }
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        for (const int rows : {1, 3, 4, 5, 9, 33, kRowsMax}) {
          const auto y = run_linear(*kernels, matrix.matrix, x.data(), {.rows = rows, .columns = shape.rows});
          EXPECT_TRUE(same_bits({expected.begin(), expected.begin() + rows * shape.rows}, y)) << label(*kernels, w.tensor, rows);
        }
      }
    }
  }
}

TEST(Linear, IsCloseToDoubleArithmetic) {
  for (const TestFormat format : kQuantizedFormats) {
    const TestWeights w(format, 48, 1536, 3);
    const auto x = random_rows(5, 1536, 4);
    const KernelSet& kernels = *runnable_kernel_sets().front();
    const TestMatrix matrix(kernels, w.tensor);
    const auto y = run_linear(kernels, matrix.matrix, x.data(), {.rows = 5, .columns = 48});
    for (std::size_t n = 0; n < 48; ++n) {
      const std::vector<float> row = floats_of_row(w.tensor, static_cast<std::int64_t>(n));
      for (std::size_t r = 0; r < 5; ++r) {
        double sum = 0, magnitude = 0, largest = 0;
        for (std::size_t c = 0; c < 1536; ++c) {
          const double product = static_cast<double>(row[c]) * static_cast<double>(x[r * 1536 + c]);
          sum += product;
          magnitude += std::fabs(static_cast<double>(row[c]));
          largest = std::max(largest, std::fabs(static_cast<double>(x[r * 1536 + c])));
        }
        // Half a step for each value of x, and f32 sums.
        EXPECT_NEAR(sum, static_cast<double>(y[r * 48 + n]), magnitude * largest * (0.5 / 32639 + 1e-6)) << format.name();
      }
    }
  }
}

// A row's bits are those that it has alone, whatever else is in the batch.
TEST(Linear, BitsDoNotDependOnTheNumberOfRows) {
  constexpr int kRows = 512;
  std::vector<int> counts;
  for (int m = 1; m <= 64; ++m) counts.push_back(m);
  counts.insert(counts.end(), {96, 300, 512});
  for (const TestFormat format : std::vector<TestFormat>{DType::kQ4_0,
                                                         DType::kQ4_1,
                                                         DType::kQ5_1,
                                                         DType::kQ8_0,
                                                         DType::kQ6_K,
                                                         {4, 64, DType::kBF16},
                                                         {8, 128, DType::kF32},
                                                         DType::kF32,
                                                         DType::kBF16}) {
    const int cols = format.fitting(416);
    const TestWeights w(format, 57, cols, 5);
    const auto x = random_rows(kRows, cols, 6);
    for (const KernelSet* const kernels : runnable_kernel_sets()) {
      const TestMatrix matrix(*kernels, w.tensor);
      std::vector<float> alone;
      for (int r = 0; r < kRows; ++r) {
        const auto y = run_linear(*kernels, matrix.matrix, x.data() + r * cols, {.rows = 1, .columns = 57});
        alone.insert(alone.end(), y.begin(), y.end());
      }
      const bool slow = kernels->name == "portable";
      for (const int m : counts) {
        if (slow && m > 12) continue;
        const auto y = run_linear(*kernels, matrix.matrix, x.data(), {.rows = m, .columns = 57});
        EXPECT_TRUE(same_bits({alone.begin(), alone.begin() + m * 57}, y)) << label(*kernels, w.tensor, m);
      }
    }
  }
}

TEST(Linear, BitsDoNotDependOnThePassOverLongRows) {
  // Rows times columns beyond what one pass keeps in the cache.
  const TestWeights w(DType::kQ4_1, 32, 8192, 7);
  const auto x = random_rows(150, 8192, 8);
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    if (kernels->name == "portable") continue;
    const TestMatrix matrix(*kernels, w.tensor);
    const auto y = run_linear(*kernels, matrix.matrix, x.data(), {.rows = 150, .columns = 32});
    for (const int r : {0, 1, 63, 64, 100, 149}) {
      const auto alone = run_linear(*kernels, matrix.matrix, x.data() + r * 8192, {.rows = 1, .columns = 32});
      EXPECT_TRUE(same_bits(alone, {y.begin() + r * 32, y.begin() + r * 32 + 32})) << kernels->name << " row " << r;
    }
  }
}

TEST(Linear, RowsBeyondOnePassKeepTheirBits) {
  for (const TestFormat format : std::vector<TestFormat>{DType::kQ4_0, DType::kQ8_0}) {
    const TestWeights w(format, 17, 64, 9);
    const auto x = random_rows(1100, 64, 10);
    const KernelSet& kernels = *runnable_kernel_sets().front();
    const TestMatrix matrix(kernels, w.tensor);
    const auto y = run_linear(kernels, matrix.matrix, x.data(), {.rows = 1100, .columns = 17});
    for (int r = 0; r < 1100; r += 7) {
      const auto alone = run_linear(kernels, matrix.matrix, x.data() + r * 64, {.rows = 1, .columns = 17});
      ASSERT_TRUE(same_bits(alone, {y.begin() + r * 17, y.begin() + r * 17 + 17})) << r;
    }
  }
}

TEST(Linear, BitsDoNotDependOnTheCutByPanels) {
  for (const TestFormat format : std::vector<TestFormat>{DType::kQ4_1, DType::kQ5_0, DType::kF16}) {
    const TestWeights w(format, 135, 96, 11);  // nine panels
    for (const int rows : {1, 2, 8, 20, 40}) {
      const auto x = random_rows(rows, 96, 12);
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        const auto whole = run_linear(*kernels, matrix.matrix, x.data(), {.rows = rows, .columns = 135});
        for (int a = 0; a <= 9; ++a) {
          for (int b = a; b <= 9; ++b) {
            const auto cut = run_linear(*kernels, matrix.matrix, x.data(), {.rows = rows, .columns = 135, .cuts = {a, b}});
            EXPECT_TRUE(same_bits(whole, cut)) << label(*kernels, w.tensor, rows) << " cuts " << a << ", " << b;
          }
        }
      }
    }
  }
}

TEST(Linear, AddsIntoTheResidual) {
  for (const TestFormat format : std::vector<TestFormat>{DType::kQ4_0, DType::kQ8_0, DType::kF32}) {
    const TestWeights w(format, 23, 64, 13);
    for (const int rows : {1, 7, 50}) {
      const auto x = random_rows(rows, 64, 14);
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        auto expected = run_linear(*kernels, matrix.matrix, x.data(), {.rows = rows, .columns = 23});
        for (float& value : expected) value = 0.5F + value;
        const auto y = run_linear(*kernels, matrix.matrix, x.data(), {.rows = rows, .columns = 23, .epilogue = Epilogue::kAdd});
        EXPECT_TRUE(same_bits(expected, y)) << label(*kernels, w.tensor, rows);
      }
    }
  }
}

// What a layer with a bias gives, of what it gives without.
TEST(Linear, ABiasIsAddedToTheFinishedProduct) {
  for (const TestFormat format : std::vector<TestFormat>{DType::kQ4_1, DType::kQ6_K, DType::kF32}) {
    const TestWeights w(format, 23, 256, 32);
    for (const int rows : {1, 7, 50}) {
      const auto x = random_rows(rows, 256, 33);
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        TestMatrix matrix(*kernels, w.tensor);
        const GuardedBytes bias(2 * kPanelRows * sizeof(float));
        std::fill_n(bias.floats(), 2 * kPanelRows, 0.0F);
        for (int i = 0; i < 23; ++i) bias.floats()[i] = static_cast<float>(i) - 9.3F;
        for (const Epilogue epilogue : {Epilogue::kStore, Epilogue::kAdd}) {
          const LinearCase c{.rows = rows, .columns = 23, .epilogue = epilogue};
          matrix.matrix.bias = nullptr;
          auto expected = run_linear(*kernels, matrix.matrix, x.data(), {.rows = rows, .columns = 23});
          for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] += bias.floats()[i % 23];
            if (epilogue == Epilogue::kAdd) expected[i] = 0.5F + expected[i];
          }
          matrix.matrix.bias = bias.floats();
          EXPECT_TRUE(same_bits(expected, run_linear(*kernels, matrix.matrix, x.data(), c))) << label(*kernels, w.tensor, rows);
        }
      }
    }
  }
}

TEST(Linear, SwigluAddsBothBiases) {
  const TestWeights gate(DType::kQ4_1, 41, 96, 34), up(DType::kQ4_1, 41, 96, 35);
  const auto x = random_rows(6, 96, 36);
  std::vector<float> biases = random_rows(1, 6 * kPanelRows, 37);  // of panels of gate and up by turns
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    TestMatrix one(*kernels, gate.tensor), other(*kernels, up.tensor), both(*kernels, gate.tensor, up.tensor);
    std::vector<float> gate_bias, up_bias;
    for (std::ptrdiff_t p = 0; p < 6; ++p) {
      auto& part = p % 2 == 0 ? gate_bias : up_bias;
      part.insert(part.end(), biases.begin() + p * kPanelRows, biases.begin() + (p + 1) * kPanelRows);
    }
    one.matrix.bias = gate_bias.data();
    other.matrix.bias = up_bias.data();
    both.matrix.bias = biases.data();
    const LinearCase apart{.rows = 6, .columns = 41};
    const auto a = run_linear(*kernels, one.matrix, x.data(), apart), b = run_linear(*kernels, other.matrix, x.data(), apart);
    std::vector<float> expected(a.size());
    swiglu(*kernels, a.data(), b.data(), expected.data(), static_cast<std::int64_t>(a.size()));
    const auto y = run_linear(*kernels, both.matrix, x.data(), {.rows = 6, .columns = 41, .epilogue = Epilogue::kSwiglu});
    EXPECT_TRUE(same_bits(expected, y)) << kernels->name;
  }
}

TEST(Linear, SwigluEqualsTwoLayersAndTheElementwiseProduct) {
  for (const TestFormat format : std::vector<TestFormat>{DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kBF16}) {
    const TestWeights gate(format, 41, 96, 15), up(format, 41, 96, 16);
    for (const int rows : {1, 2, 6, 25, 70}) {
      const auto x = random_rows(rows, 96, 17);
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix one(*kernels, gate.tensor), other(*kernels, up.tensor), both(*kernels, gate.tensor, up.tensor);
        const LinearCase apart{.rows = rows, .columns = 41};
        const auto a = run_linear(*kernels, one.matrix, x.data(), apart), b = run_linear(*kernels, other.matrix, x.data(), apart);
        std::vector<float> expected(a.size());
        swiglu(*kernels, a.data(), b.data(), expected.data(), static_cast<std::int64_t>(a.size()));
        const LinearCase joined{.rows = rows, .columns = 41, .epilogue = Epilogue::kSwiglu, .cuts = {2, 2, 4}};
        EXPECT_TRUE(same_bits(expected, run_linear(*kernels, both.matrix, x.data(), joined)))
            << label(*kernels, gate.tensor, rows);
      }
    }
  }
}

TEST(Linear, SetsAgreeOnAVocabulary) {
  const TestWeights w(DType::kQ8_0, 49155, 64, 18);
  const auto x = random_rows(5, 64, 19);
  for (const int rows : {1, 5}) {
    std::vector<float> first;
    for (const KernelSet* const kernels : runnable_kernel_sets()) {
      const TestMatrix matrix(*kernels, w.tensor);
      const auto y = run_linear(*kernels, matrix.matrix, x.data(), {.rows = rows, .columns = 49155});
      if (first.empty()) first = y;
      EXPECT_TRUE(same_bits(first, y)) << kernels->name;
    }
  }
}

TEST(Linear, ARowThatIsNotFiniteFailsAlone) {
  const float bad[] = {std::nanf(""), HUGE_VALF, -HUGE_VALF};
  for (const TestFormat format : std::vector<TestFormat>{DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kF32}) {
    const TestWeights w(format, 33, 96, 20);
    for (const int rows : {2, 5, 24, 49}) {
      const auto x = random_rows(rows, 96, 21);
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        const auto good = run_linear(*kernels, matrix.matrix, x.data(), {.rows = rows, .columns = 33});
        for (int broken = 0; broken < rows; broken += 3) {
          auto spoilt = x;
          spoilt[static_cast<std::size_t>(broken * 96 + 95 - broken)] = bad[broken % 3];
          const auto y = run_linear(*kernels, matrix.matrix, spoilt.data(), {.rows = rows, .columns = 33});
          for (int i = 0; i < rows * 33; ++i) {
            const auto at = static_cast<std::size_t>(i);
            if (i / 33 == broken) {
              EXPECT_FALSE(std::isfinite(y[at])) << label(*kernels, w.tensor, rows);
              EXPECT_TRUE(std::isnan(y[at]) || !is_quantized(matrix.matrix.format));
            } else {
              ASSERT_EQ(std::bit_cast<std::uint32_t>(good[at]), std::bit_cast<std::uint32_t>(y[at]))
                  << label(*kernels, w.tensor, rows);
            }
          }
        }
      }
    }
  }
}

TEST(Linear, ScalesThatAreNotFiniteStayInTheirOutput) {
  TestWeights w(DType::kQ8_0, 20, 64, 22);
  const std::uint16_t infinity = 0x7c00;
  std::memcpy(w.bytes.data() + 7 * 68, &infinity, 2);  // row 7
  const auto x = random_rows(6, 64, 23);
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const TestMatrix matrix(*kernels, w.tensor);
    const auto y = run_linear(*kernels, matrix.matrix, x.data(), {.rows = 6, .columns = 20});
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isfinite(y[i]), i % 20 != 7) << kernels->name;
  }
}

TEST(Linear, QuietRowsAreZeroAndNothingDependsOnSubnormals) {
  const TestWeights w(DType::kQ4_1, 20, 64, 24);
  const auto base = random_rows(8, 64, 25);
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const TestMatrix matrix(*kernels, w.tensor);
    for (const float factor : {0.0F, 0x1p-149F, 0x1p-126F, 0x1p-100F, 0x1p-84F}) {
      auto x = base;
      for (float& value : x) value *= factor;
      const auto y = run_linear(*kernels, matrix.matrix, x.data(), {.rows = 8, .columns = 20});
      for (const float value : y) EXPECT_EQ(value, 0.0F) << kernels->name << " " << factor;
    }
  }
}

#ifdef __SSE2__
// Flush-to-zero and denormals-are-zero, as kernel threads have them during a step.
class WithoutSubnormals {
 public:
  WithoutSubnormals() : before_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(before_ | 0x8040U); }
  ~WithoutSubnormals() { __builtin_ia32_ldmxcsr(before_); }

 private:
  unsigned before_;
};

TEST(Linear, QuantizedBitsAreTheSameWhileSubnormalsCountAsZero) {
  for (const DType dtype : {DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0}) {
    TestWeights w(dtype, 32, 96, 26);
    const auto block = static_cast<std::size_t>(dtype_info(dtype).block_bytes);
    for (std::size_t at = 0; at < w.bytes.size(); at += block) {  // every scale is subnormal
      const float subnormal = std::ldexp(static_cast<float>(at / block % 1023 + 1), -24);
      w.put(w.bytes, at, DType::kF16, subnormal);
      if (TestFormat(dtype).affine()) w.put(w.bytes, at + 2, DType::kF16, subnormal);
    }
    auto x = random_rows(6, 96, 27);
    for (float& value : x) value *= 0x1p-78F;
    for (const int rows : {1, 6}) {
      std::vector<float> first;
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        const LinearCase c{.rows = rows, .columns = 32};
        const auto y = run_linear(*kernels, matrix.matrix, x.data(), c);
        if (first.empty()) first = y;
        EXPECT_NE(y[0], 0.0F);
        EXPECT_TRUE(same_bits(first, y)) << label(*kernels, w.tensor, rows);
        const WithoutSubnormals flushed;
        EXPECT_TRUE(same_bits(first, run_linear(*kernels, matrix.matrix, x.data(), c))) << label(*kernels, w.tensor, rows);
      }
    }
  }
}
#endif

TEST(Linear, DenseIsCloseToDoubleArithmetic) {
  for (const TestFormat format : kDenseFormats) {
    for (const Shape shape : {Shape{1, 1}, Shape{17, 33}, Shape{40, 577}, Shape{100, 64}}) {
      const TestWeights w(format, shape.rows, shape.cols, 28);
      const auto x = random_rows(7, shape.cols, 29);
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        const auto y = run_linear(*kernels, matrix.matrix, x.data(), {.rows = 7, .columns = shape.rows});
        for (int n = 0; n < shape.rows; ++n) {
          const std::vector<float> row = floats_of_row(w.tensor, n);
          for (int r = 0; r < 7; ++r) {
            double sum = 0, magnitude = 0;
            for (int c = 0; c < shape.cols; ++c) {
              const double product = static_cast<double>(row[static_cast<std::size_t>(c)]) *
                                     static_cast<double>(x[static_cast<std::size_t>(r * shape.cols + c)]);
              sum += product;
              magnitude += std::fabs(product);
            }
            EXPECT_NEAR(sum, static_cast<double>(y[static_cast<std::size_t>(r * shape.rows + n)]), magnitude * 1e-5)
                << label(*kernels, w.tensor, 7);
          }
        }
      }
    }
  }
}

TEST(Linear, AnEmptyBatchOrRangeWritesNothing) {
  const TestWeights w(DType::kQ4_1, 32, 64, 30);
  for (const KernelSet* const kernels : runnable_kernel_sets()) {
    const TestMatrix matrix(*kernels, w.tensor);
    EXPECT_TRUE(run_linear(*kernels, matrix.matrix, nullptr, {.rows = 0, .columns = 32}).empty());
    const auto x = random_rows(4, 64, 31);
    const TestActivations activations(*kernels, activation_forms(matrix.matrix), x.data(), 4, 64);
    linear(*kernels, matrix.matrix, activations.x, {nullptr, 32, Epilogue::kStore}, {1, 1, nullptr});
  }
}

TEST(Linear, SharesCoverAllPanelsInOrder) {
  for (const int rows : {1, 16, 17, 47, 192, 960, 49155}) {
    const PanelMatrix matrix = panel_matrix(panel_format({DType::kQ4_0, rows, 64, {}, {}}).value(), rows, 64).value();
    for (int count = 1; count <= 9; ++count) {
      int at = 0;
      for (int i = 0; i < count; ++i) {
        const LinearShare share = linear_share(matrix, i, count, nullptr);
        EXPECT_EQ(share.panel_begin, at);
        EXPECT_LE(share.panel_begin, share.panel_end);
        EXPECT_EQ(share.panel_begin % 2, 0);
        EXPECT_LE(share.panel_end - share.panel_begin, matrix.panels / count + 2);
        at = share.panel_end;
      }
      EXPECT_EQ(at, matrix.panels);
    }
  }
}

}  // namespace
}  // namespace linnet::cpu
