// Repacking with AVX-512: a group of 16 rows is a transposition of dwords.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/repack_stage.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

// to[i][lane] = dword i of the 16 bytes of row `lane`, i = 0 .. 3.
template <class LoadRow>
[[gnu::always_inline]] inline void transpose(const LoadRow& load_row, std::byte* to) {
  __m512i v[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {  // lane L of 128 bits: row 4L + i
    __m512i four = _mm512_castsi128_si512(load_row(i));
    four = _mm512_inserti32x4(four, load_row(4 + i), 1);
    four = _mm512_inserti32x4(four, load_row(8 + i), 2);
    v[i] = _mm512_inserti32x4(four, load_row(12 + i), 3);
  }
  const __m512i low01 = _mm512_unpacklo_epi32(v[0], v[1]), low23 = _mm512_unpacklo_epi32(v[2], v[3]);
  const __m512i high01 = _mm512_unpackhi_epi32(v[0], v[1]), high23 = _mm512_unpackhi_epi32(v[2], v[3]);
  _mm512_storeu_si512(to, _mm512_unpacklo_epi64(low01, low23));
  _mm512_storeu_si512(to + 64, _mm512_unpackhi_epi64(low01, low23));
  _mm512_storeu_si512(to + 128, _mm512_unpacklo_epi64(high01, high23));
  _mm512_storeu_si512(to + 192, _mm512_unpackhi_epi64(high01, high23));
}

[[gnu::always_inline]] inline __m128i load16(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// As put_unit.
[[gnu::always_inline]] inline void put_unit_avx512(const RepackStage& stage, PanelFormat format, int column, std::byte* to) {
  const auto at = [&](int row) { return load16(stage.codes[row] + column); };
  const auto after = [&](int row) { return load16(stage.codes[row] + column + 16); };
  if (is_nibbles(format)) {
    transpose([&](int row) { return _mm_or_si128(at(row), _mm_slli_epi16(after(row), 4)); }, to);
    return;
  }
  transpose(at, to);
  if (format.group > 16) transpose(after, to + 256);
}

// Formats whose codes lie in the file as they do in panels: transposed where they are. Each block begins with the f16 scale; if
// affine the f16 bias follows: two halves, one dword.
template <DType kType>
void repack_blocks(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range) {
  constexpr bool kAffine = kType == DType::kQ4_1;
  constexpr std::ptrdiff_t kCodes = kAffine ? 4 : 2;
  constexpr std::ptrdiff_t kBlock = kCodes + (kType == DType::kQ8_0 ? 32 : 16);
  const std::int64_t groups = source.cols / 32;
  const __m512i index = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                           _mm512_set1_epi32(static_cast<int>(groups * kBlock)));
  for (int p = range.begin; p < range.end; ++p) {
    std::byte* const panel = into.panel(place.first_panel + p * place.panel_step);
    std::byte* to = panel;
    const std::byte* from = source.data.data() + std::int64_t{p} * kPanelRows * groups * kBlock;
    for (std::int64_t g = 0; g < groups; ++g, from += kBlock) {
      const auto codes = [&](int row) { return load16(from + row * groups * kBlock + kCodes); };
      const auto after = [&](int row) { return load16(from + row * groups * kBlock + kCodes + 16); };
      transpose(codes, to);
      if constexpr (kType == DType::kQ8_0) transpose(after, to + 256);
      to += code_bytes(into.format);
      const __m512i numbers = _mm512_i32gather_epi32(index, from, 1);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(numbers));
      to += 32;
      if constexpr (!kAffine) continue;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(_mm512_srli_epi32(numbers, 16)));
      to += 32;
    }
    __builtin_memset(to, 0, into.panel_bytes - static_cast<std::size_t>(to - panel));
  }
}

// Columns of 16 rows at a time; halves two columns at a time, in the two words of a dword.
void repack_dense(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range) {
  const bool words = source.dtype == DType::kF32;
  const std::int64_t size = words ? 4 : 2;
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i index = _mm512_mullo_epi32(lane, _mm512_set1_epi32(static_cast<int>(source.cols)));
  for (int p = range.begin; p < range.end; ++p) {
    std::byte* to = into.panel(place.first_panel + p * place.panel_step);
    const std::byte* const from = source.data.data() + std::int64_t{p} * kPanelRows * source.cols * size;
    const std::int64_t rows = source.rows - std::int64_t{p} * kPanelRows;
    const __mmask16 mask = lanes(rows);
    std::int64_t c = 0;
    if (words) {
      for (; c < source.cols; ++c, to += 64) {
        _mm512_storeu_si512(to, _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, index, from + c * 4, 4));
      }
      continue;
    }
    for (; c + 2 <= source.cols; c += 2, to += 64) {
      const __m512i two = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, index, from + c * 2, 2);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(two));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), _mm512_cvtepi32_epi16(_mm512_srli_epi32(two, 16)));
    }
    if (c < source.cols) {
      __builtin_memset(to, 0, 32);
      for (int r = 0; r < kPanelRows && r < rows; ++r) __builtin_memcpy(to + r * 2, from + (r * source.cols + c) * 2, 2);
    }
  }
}

}  // namespace

void repack_avx512(const Tensor& source, const PanelMatrix& into, PanelPlace place, PanelRange range) {
  if (!is_quantized(into.format)) return repack_dense(source, into, place, range);
  // Panels of 16 rows; a last one of fewer is staged.
  const auto full = static_cast<std::int32_t>(source.rows / kPanelRows);
  const PanelRange whole{range.begin, range.end < full ? range.end : full};
  const PanelRange rest{range.begin > full ? range.begin : full, range.end};
  if (source.affine) return repack_staged(source, into, place, range, put_unit_avx512);
  switch (source.dtype) {
    case DType::kQ4_0:
      repack_blocks<DType::kQ4_0>(source, into, place, whole);
      break;
    case DType::kQ4_1:
      repack_blocks<DType::kQ4_1>(source, into, place, whole);
      break;
    case DType::kQ8_0:
      repack_blocks<DType::kQ8_0>(source, into, place, whole);
      break;
    default:
      return repack_staged(source, into, place, range, put_unit_avx512);
  }
  repack_staged(source, into, place, rest, put_unit_avx512);
}

}  // namespace linnet::cpu
