#include "backends/cpu/kernels/panels.h"

#include "backends/cpu/kernels/kernel_test_data.h"
#include "weights/dequantize.h"

namespace linnet::cpu {
namespace {

struct Shape {
  int rows, cols;
};
constexpr Shape kShapes[] = {{1, 32}, {15, 64}, {16, 96}, {17, 32}, {50, 160}, {192, 576}};

TEST(Panels, RowsComeBackExactly) {
  for (const TestFormat format : all_formats()) {
    for (const Shape shape : kShapes) {
      const TestWeights w(format, shape.rows, format.fitting(shape.cols), 1);
      std::vector<float> row(static_cast<std::size_t>(w.tensor.cols));
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        for (int r = 0; r < shape.rows; ++r) {
          dequantize_row(matrix.matrix, r, row.data());
          ASSERT_TRUE(same_bits(floats_of_row(w.tensor, r), row)) << kernels->name << " " << format.name() << " row " << r;
        }
      }
    }
  }
}

// The formats' definition, where the library has one.
TEST(Panels, RowsAreThoseOfTheReference) {
  for (const DTypeInfo& info : dtypes()) {
    const TestFormat format(info.dtype);
    const TestWeights w(format, 20, format.fitting(300), 2);
    const KernelSet& kernels = *runnable_kernel_sets().front();
    const TestMatrix matrix(kernels, w.tensor);
    std::vector<float> expected(static_cast<std::size_t>(w.tensor.cols)), row(expected.size());
    for (int r = 0; r < 20; ++r) {
      dequantize_row(info.dtype, w.tensor.row(r), w.tensor.cols, expected.data());
      dequantize_row(matrix.matrix, r, row.data());
      ASSERT_TRUE(same_bits(expected, row)) << info.name << " row " << r;
    }
  }
}

TEST(Panels, DenseTakesAnyNumberOfColumns) {
  for (const TestFormat format : kDenseFormats) {
    for (const int cols : {1, 2, 3, 31, 33}) {
      const TestWeights w(format, 19, cols, 2);
      std::vector<float> row(static_cast<std::size_t>(cols));
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        for (int r = 0; r < 19; ++r) {
          dequantize_row(matrix.matrix, r, row.data());
          ASSERT_TRUE(same_bits(floats_of_row(w.tensor, r), row)) << kernels->name << " " << format.name();
        }
      }
    }
  }
}

TEST(Panels, EveryHalfIsAScale) {
  // All 65,536 halves, infinities and NaN among them, as scales of Q8_0.
  std::vector<std::byte> bytes(65536 * 34, std::byte{1});
  for (std::size_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    std::memcpy(bytes.data() + i * 34, &half, 2);
  }
  const Tensor source{DType::kQ8_0, 1024, 2048, bytes};
  const KernelSet& kernels = *runnable_kernel_sets().front();
  const TestMatrix matrix(kernels, source);
  std::vector<float> expected(2048), row(2048);
  for (int r = 0; r < 1024; ++r) {
    dequantize_row(DType::kQ8_0, source.row(r), 2048, expected.data());
    dequantize_row(matrix.matrix, r, row.data());
    for (std::size_t c = 0; c < 2048; ++c) {
      if (std::isnan(expected[c])) {
        ASSERT_TRUE(std::isnan(row[c]));
      } else {
        ASSERT_EQ(expected[c], row[c]);
      }
    }
  }
}

TEST(Panels, SetsWriteTheSameBytes) {
  for (const TestFormat format : all_formats()) {
    for (const Shape shape : kShapes) {
      const TestWeights w(format, shape.rows, format.fitting(shape.cols), 3);
      std::string first;
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        const std::string bytes(reinterpret_cast<const char*>(matrix.bytes.data()), matrix.bytes.size());
        if (first.empty()) first = bytes;
        EXPECT_TRUE(first == bytes) << kernels->name << " " << format.name() << " " << shape.rows << " x " << shape.cols;
      }
    }
  }
}

TEST(Panels, JoinsMatricesByRowsInAnyOrderOfRanges) {
  for (const TestFormat format : std::vector<TestFormat>{DType::kQ4_1, DType::kQ8_0, {4, 32, DType::kBF16}, DType::kF32}) {
    const TestWeights q(format, 64, 96, 4), k(format, 32, 96, 5), v(format, 23, 96, 6);
    for (const KernelSet* const kernels : runnable_kernel_sets()) {
      PanelMatrix joined = panel_matrix(panel_format(q.tensor).value(), 64 + 32 + 23, 96).value();
      const GuardedBytes memory(joined.bytes());
      joined.data = memory.data();
      repack(*kernels, v.tensor, joined, {6, 1}, {0, 2});
      repack(*kernels, q.tensor, joined, {0, 1}, {2, 4});
      repack(*kernels, q.tensor, joined, {0, 1}, {0, 2});
      repack(*kernels, k.tensor, joined, {4, 1}, {0, 2});
      std::vector<float> row(96);
      for (int r = 0; r < joined.rows; ++r) {
        const Tensor& from = r < 64 ? q.tensor : (r < 96 ? k.tensor : v.tensor);
        dequantize_row(joined, r, row.data());
        ASSERT_TRUE(same_bits(floats_of_row(from, r < 64 ? r : (r < 96 ? r - 64 : r - 96)), row))
            << kernels->name << " row " << r;
      }
    }
  }
}

PanelFormat format_of(DType dtype) { return panel_format({dtype, 0, 0, {}, {}}).value(); }

TEST(Panels, RefusesWhatItCannotHold) {
  const auto odd = panel_matrix(format_of(DType::kQ4_0), 16, 48);
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(odd.error().message.find("[16, 48]"), std::string::npos);
  EXPECT_FALSE(panel_matrix({.codes = Codes::kNibbles, .group = 64, .affine = true}, 16, 96).ok());
  for (const auto& [rows, cols] :
       {std::pair<std::int64_t, std::int64_t>{0, 32}, {-1, 32}, {16, 0}, {16, 1LL << 40}, {1LL << 40, 32}, {INT64_MAX, 32}}) {
    const auto matrix = panel_matrix(format_of(DType::kQ4_0), rows, cols);
    ASSERT_FALSE(matrix.ok()) << rows << " x " << cols;
    EXPECT_EQ(matrix.error().code, ErrorCode::kTooLarge);
    EXPECT_FALSE(panel_matrix_pairs(format_of(DType::kQ4_0), rows, cols).ok());
  }
}

TEST(Panels, RefusesAffineGroupsThatNoFileHas) {
  const AffineGroups good{.bits = 4, .group = 64, .type = DType::kF16};
  EXPECT_TRUE(panel_format({DType::kF32, 16, 64, {}, good}).ok());
  AffineGroups bits = good, group = good, type = good;
  bits.bits = 7;
  group.group = 16;
  type.type = DType::kQ8_0;
  for (const AffineGroups& bad : {bits, group, type}) {
    const auto format = panel_format({DType::kF32, 16, 64, {}, bad});
    ASSERT_FALSE(format.ok());
    EXPECT_EQ(format.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(format.error().message.find(std::to_string(bad.bits) + " bits in groups of " + std::to_string(bad.group)),
              std::string::npos);
  }
}

TEST(Panels, BytesAreThoseOfTheFileButForPadding) {
  const auto bytes = [](DType dtype, std::int64_t rows, std::int64_t cols) {
    return panel_matrix(format_of(dtype), rows, cols)->bytes();
  };
  EXPECT_EQ(bytes(DType::kQ4_1, 1536, 576), 1536U * 576 / 32 * 20);
  EXPECT_EQ(bytes(DType::kQ4_0, 1536, 576), 1536U * 576 / 32 * 18);
  EXPECT_EQ(bytes(DType::kQ8_0, 49152, 576), 49152U * 576 / 32 * 34);
  EXPECT_EQ(bytes(DType::kF16, 17, 10), 2U * 320);
  EXPECT_EQ(panel_matrix_pairs(format_of(DType::kQ4_1), 17, 576)->panels, 4);
  const PanelFormat affine{.codes = Codes::kNibbles, .group = 64, .affine = true, .numbers = DType::kBF16};
  EXPECT_EQ(panel_matrix(affine, 1536, 1024)->bytes(), 1536U * 1024 / 64 * 36);
}

}  // namespace
}  // namespace linnet::cpu
