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
  for (const DType dtype : kAllTypes) {
    for (const Shape shape : kShapes) {
      const TestWeights w(dtype, shape.rows, shape.cols, 1);
      std::vector<float> expected(static_cast<std::size_t>(shape.cols)), row(expected.size());
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        for (int r = 0; r < shape.rows; ++r) {
          dequantize_row(dtype, w.tensor.row(r), shape.cols, expected.data());
          dequantize_row(matrix.matrix, r, row.data());
          ASSERT_TRUE(same_bits(expected, row)) << kernels->name << " " << dtype_name(dtype) << " row " << r;
        }
      }
    }
  }
}

TEST(Panels, DenseTakesAnyNumberOfColumns) {
  for (const DType dtype : kDenseTypes) {
    for (const int cols : {1, 2, 3, 31, 33}) {
      const TestWeights w(dtype, 19, cols, 2);
      std::vector<float> expected(static_cast<std::size_t>(cols)), row(expected.size());
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        for (int r = 0; r < 19; ++r) {
          dequantize_row(dtype, w.tensor.row(r), cols, expected.data());
          dequantize_row(matrix.matrix, r, row.data());
          ASSERT_TRUE(same_bits(expected, row)) << kernels->name << " " << dtype_name(dtype);
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
  for (const DType dtype : kAllTypes) {
    for (const Shape shape : kShapes) {
      const TestWeights w(dtype, shape.rows, shape.cols, 3);
      std::string first;
      for (const KernelSet* const kernels : runnable_kernel_sets()) {
        const TestMatrix matrix(*kernels, w.tensor);
        const std::string bytes(reinterpret_cast<const char*>(matrix.bytes.data()), matrix.bytes.size());
        if (first.empty()) first = bytes;
        EXPECT_TRUE(first == bytes) << kernels->name << " " << dtype_name(dtype) << " " << shape.rows << " x " << shape.cols;
      }
    }
  }
}

TEST(Panels, JoinsMatricesByRowsInAnyOrderOfRanges) {
  for (const DType dtype : {DType::kQ4_1, DType::kQ8_0, DType::kF32}) {
    const TestWeights q(dtype, 64, 96, 4), k(dtype, 32, 96, 5), v(dtype, 23, 96, 6);
    for (const KernelSet* const kernels : runnable_kernel_sets()) {
      PanelMatrix joined = panel_matrix(dtype, 64 + 32 + 23, 96).value();
      const GuardedBytes memory(joined.bytes());
      joined.data = memory.data();
      repack(*kernels, v.tensor, joined, {6, 1}, 0, 2);
      repack(*kernels, q.tensor, joined, {0, 1}, 2, 4);
      repack(*kernels, q.tensor, joined, {0, 1}, 0, 2);
      repack(*kernels, k.tensor, joined, {4, 1}, 0, 2);
      std::vector<float> expected(96), row(96);
      for (int r = 0; r < joined.rows; ++r) {
        const Tensor& from = r < 64 ? q.tensor : (r < 96 ? k.tensor : v.tensor);
        dequantize_row(dtype, from.row(r < 64 ? r : (r < 96 ? r - 64 : r - 96)), 96, expected.data());
        dequantize_row(joined, r, row.data());
        ASSERT_TRUE(same_bits(expected, row)) << kernels->name << " row " << r;
      }
    }
  }
}

TEST(Panels, RefusesWhatItCannotHold) {
  const auto odd = panel_matrix(DType::kQ4_0, 16, 48);
  ASSERT_FALSE(odd.ok());
  EXPECT_EQ(odd.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(odd.error().message.find("[16, 48]"), std::string::npos);
  const auto type = panel_matrix(DType::kQ6_K, 16, 256);
  ASSERT_FALSE(type.ok());
  EXPECT_NE(type.error().message.find("Q6_K"), std::string::npos);
  for (const auto& [rows, cols] :
       {std::pair<std::int64_t, std::int64_t>{0, 32}, {-1, 32}, {16, 0}, {16, 1LL << 40}, {1LL << 40, 32}, {INT64_MAX, 32}}) {
    const auto matrix = panel_matrix(DType::kQ4_0, rows, cols);
    ASSERT_FALSE(matrix.ok()) << rows << " x " << cols;
    EXPECT_EQ(matrix.error().code, ErrorCode::kTooLarge);
    EXPECT_FALSE(panel_matrix_pairs(DType::kQ4_0, rows, cols).ok());
    EXPECT_EQ(panel_matrix_bytes(DType::kQ4_0, rows, cols), 0U);
  }
}

TEST(Panels, BytesAreThoseOfTheFileButForPadding) {
  EXPECT_EQ(panel_matrix_bytes(DType::kQ4_1, 1536, 576), 1536U * 576 / 32 * 20);
  EXPECT_EQ(panel_matrix_bytes(DType::kQ4_0, 1536, 576), 1536U * 576 / 32 * 18);
  EXPECT_EQ(panel_matrix_bytes(DType::kQ8_0, 49152, 576), 49152U * 576 / 32 * 34);
  EXPECT_EQ(panel_matrix_bytes(DType::kF16, 17, 10), 2U * 320);
  EXPECT_EQ(panel_matrix_pairs(DType::kQ4_1, 17, 576)->panels, 4);
}

}  // namespace
}  // namespace linnet::cpu
