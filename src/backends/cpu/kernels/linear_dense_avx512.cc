// Dense weights times f32 rows with AVX-512: acc = fma(w, x, acc), columns ascending, for one to four rows and one to four panels
// at once.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

constexpr int kPanelsMax = 4;

// sums: [kPanels][kRows][16]
template <DType kNumbers, int kRows, int kPanels>
void run_block(const PanelMatrix& weights, const float* x, int panel, float* sums) {
  const std::byte* w = weights.panel(panel);
  const std::ptrdiff_t cols = weights.cols;
  __m512 acc[kRows][kPanels];
  for (auto& row : acc) {
    for (auto& a : row) a = _mm512_setzero_ps();
  }
  for (std::ptrdiff_t c = 0; c < cols; ++c, w += panel_group_bytes({.numbers = kNumbers})) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const __m512 v = load_numbers(kNumbers, w + static_cast<std::size_t>(p) * weights.panel_bytes);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) acc[r][p] = _mm512_fmadd_ps(v, _mm512_set1_ps(x[r * cols + c]), acc[r][p]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) _mm512_storeu_ps(sums + (p * kRows + r) * kPanelRows, acc[r][p]);
  }
}

template <DType kNumbers, int kRows>
void run_rows(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share, int row) {
  alignas(64) float sums[kPanelsMax * kRows * kPanelRows];
  const float* const from = x.floats + std::ptrdiff_t{row} * x.cols;
  for (int p = share.panel_begin; p < share.panel_end;) {
    const int left = share.panel_end - p;
    const int panels = left >= kPanelsMax ? kPanelsMax : (left >= 2 ? 2 : 1);
    switch (panels) {
      case 4:
        run_block<kNumbers, kRows, 4>(weights, from, p, sums);
        break;
      case 2:
        run_block<kNumbers, kRows, 2>(weights, from, p, sums);
        break;
      default:
        run_block<kNumbers, kRows, 1>(weights, from, p, sums);
        break;
    }
    for (int i = 0; i < panels; i += 2) {
      const int count = panels - i < 2 ? 1 : 2;
      const float* const first = sums + i * kRows * kPanelRows;
      finish({&out, &weights, p + i, count}, {first, first + kRows * kPanelRows, kPanelRows}, row, kRows);
    }
    p += panels;
  }
}

template <DType kNumbers>
void run(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  int row = 0;
  for (; row + 4 <= x.rows; row += 4) run_rows<kNumbers, 4>(weights, x, out, share, row);
  for (; row + 2 <= x.rows; row += 2) run_rows<kNumbers, 2>(weights, x, out, share, row);
  for (; row < x.rows; ++row) run_rows<kNumbers, 1>(weights, x, out, share, row);
}

}  // namespace

void linear_dense_avx512(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  switch (weights.format.numbers) {
    case DType::kF32:
      return run<DType::kF32>(weights, x, out, share);
    case DType::kF16:
      return run<DType::kF16>(weights, x, out, share);
    case DType::kBF16:
      return run<DType::kBF16>(weights, x, out, share);
    default:
      return;
  }
}

}  // namespace linnet::cpu
