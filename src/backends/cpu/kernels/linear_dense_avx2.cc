// Dense weights times f32 rows with AVX2: acc = fma(w, x, acc), columns ascending, for one to four rows and one panel at a time.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx2.h"

namespace linnet::cpu {
namespace {

constexpr int kRowsAtOnce = 4;

template <int kRows>
void run_panel(const PanelMatrix& weights, const float* x, int index, float (*sums)[2][kPanelRows], int panel_of_two) {
  const std::byte* w = weights.panel(index);
  const std::ptrdiff_t cols = weights.cols;
  const DType numbers = weights.format.numbers;
  const std::ptrdiff_t step = panel_group_bytes(weights.format);
  __m256 acc[kRows][2];
  for (auto& row : acc) row[0] = row[1] = _mm256_setzero_ps();
  for (std::ptrdiff_t c = 0; c < cols; ++c, w += step) {
    const __m256 front = load_numbers8(numbers, w, 0), back = load_numbers8(numbers, w, 1);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const __m256 value = _mm256_set1_ps(x[r * cols + c]);
      acc[r][0] = _mm256_fmadd_ps(front, value, acc[r][0]);
      acc[r][1] = _mm256_fmadd_ps(back, value, acc[r][1]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int half = 0; half < 2; ++half) _mm256_storeu_ps(sums[r][panel_of_two] + 8 * half, acc[r][half]);
  }
}

template <int kRows>
void run_rows(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share, int row) {
  float sums[kRows][2][kPanelRows];
  for (int p = share.panel_begin; p < share.panel_end; p += 2) {
    const int panels = share.panel_end - p < 2 ? 1 : 2;
    for (int i = 0; i < panels; ++i) run_panel<kRows>(weights, x.floats + std::ptrdiff_t{row} * x.cols, p + i, sums, i);
    for (int r = 0; r < kRows; ++r) finish_row({&weights, &out, p, panels, row + r}, sums[r]);
  }
}

}  // namespace

void linear_dense_avx2(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  int row = 0;
  for (; row + kRowsAtOnce <= x.rows; row += kRowsAtOnce) run_rows<kRowsAtOnce>(weights, x, out, share, row);
  for (; row < x.rows; ++row) run_rows<1>(weights, x, out, share, row);
}

}  // namespace linnet::cpu
