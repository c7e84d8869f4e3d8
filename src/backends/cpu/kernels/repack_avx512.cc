// Repacking with AVX-512: a group of 16 rows is a transposition of dwords.
#include <immintrin.h>

#include "backends/cpu/kernels/kernels_x86.h"
#include "backends/cpu/kernels/repack_source.h"
#include "backends/cpu/kernels/simd_avx512.h"

namespace linnet::cpu {
namespace {

// Blocks of one group in 16 rows: row r at data + r * stride.
struct GroupSource {
  const std::byte* data;
  std::int64_t stride;
};

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

// 32 codes of 5 bits as bytes: nibbles at `nibbles`, fifth bits at `fifth`.
[[gnu::always_inline]] inline __m256i five_bits(const std::byte* nibbles, const std::byte* fifth, bool symmetric) {
  const __m128i v = load16(nibbles);
  const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(v), _mm_srli_epi16(v, 4), 1);
  std::uint32_t bits;
  __builtin_memcpy(&bits, fifth, 4);
  const __m256i sixteen = _mm256_set1_epi8(16);
  const __m256i code = _mm256_or_si256(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_maskz_mov_epi8(bits, sixteen));
  return symmetric ? _mm256_sub_epi8(code, sixteen) : code;
}

template <DType kType>
[[gnu::always_inline]] inline void put_codes(const GroupSource& from, std::byte* to) {
  constexpr QuantSource kSource = quant_source(kType);
  const auto row = [&](int r) { return from.data + r * from.stride; };
  if constexpr (kType == DType::kQ4_0 || kType == DType::kQ4_1) {
    transpose([&](int r) { return load16(row(r) + kSource.codes); }, to);
  } else if constexpr (kType == DType::kQ8_0) {
    transpose([&](int r) { return load16(row(r) + kSource.codes); }, to);
    transpose([&](int r) { return load16(row(r) + kSource.codes + 16); }, to + 256);
  } else {
    __m256i rows[kPanelRows];
    for (int r = 0; r < kPanelRows; ++r)
      rows[r] = five_bits(row(r) + kSource.codes, row(r) + kSource.fifth_bits, !kSource.affine);
    transpose([&](int r) { return _mm256_castsi256_si128(rows[r]); }, to);
    transpose([&](int r) { return _mm256_extracti128_si256(rows[r], 1); }, to + 256);
  }
}

// Every block begins with the scale, and if affine the bias follows: two halves, one dword.
template <DType kType>
[[gnu::always_inline]] inline void put_scales(const GroupSource& from, std::byte* to) {
  const __m512i index = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                           _mm512_set1_epi32(static_cast<int>(from.stride)));
  const __m512i first = _mm512_i32gather_epi32(index, from.data, 1);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(first));
  if constexpr (quant_source(kType).affine) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), _mm512_cvtepi32_epi16(_mm512_srli_epi32(first, 16)));
  }
}

template <DType kType>
void repack_quantized(const Tensor& source, const PanelMatrix& into, PanelPlace place, int panel_begin, int panel_end) {
  constexpr QuantSource kSource = quant_source(kType);
  const std::int64_t row_bytes = source.cols / kGroup * kSource.block_bytes;
  const auto groups = static_cast<int>(source.cols / kGroup);
  const std::size_t unit = panel_unit_bytes(into.format);
  const std::size_t scales = is_nibbles(into.format) ? 256 : 512;
  alignas(64) std::byte some_rows[kPanelRows * kSource.block_bytes];
  for (int p = panel_begin; p < panel_end; ++p) {
    std::byte* to = into.panel(place.first_panel + p * place.panel_step);
    const std::byte* from = source.data.data() + std::int64_t{p} * kPanelRows * row_bytes;
    const std::int64_t rows = source.rows - std::int64_t{p} * kPanelRows;
    for (int g = 0; g < groups; ++g, to += unit, from += kSource.block_bytes) {
      GroupSource group{from, row_bytes};
      if (rows < kPanelRows) {
        __builtin_memset(some_rows, 0, sizeof some_rows);
        for (int r = 0; r < kPanelRows; ++r) {
          std::byte* const block = some_rows + r * kSource.block_bytes;
          if (r < rows) {
            __builtin_memcpy(block, from + r * row_bytes, kSource.block_bytes);
          } else if (kType == DType::kQ5_0) {
            __builtin_memset(block + kSource.fifth_bits, 0xff, 4);  // the code that means zero
          }
        }
        group = {some_rows, kSource.block_bytes};
      }
      put_codes<kType>(group, to);
      put_scales<kType>(group, to + scales);
    }
    __builtin_memset(to, 0, static_cast<std::size_t>(into.units - groups) * unit);
  }
}

// Columns of 16 rows at a time; halves two columns at a time, in the two words of a dword.
void repack_dense(const Tensor& source, const PanelMatrix& into, PanelPlace place, int panel_begin, int panel_end) {
  const bool words = source.dtype == DType::kF32;
  const std::int64_t size = words ? 4 : 2;
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i index = _mm512_mullo_epi32(lane, _mm512_set1_epi32(static_cast<int>(source.cols)));
  for (int p = panel_begin; p < panel_end; ++p) {
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

void repack_avx512(const Tensor& source, const PanelMatrix& into, PanelPlace place, int panel_begin, int panel_end) {
  switch (source.dtype) {
    case DType::kQ4_0:
      return repack_quantized<DType::kQ4_0>(source, into, place, panel_begin, panel_end);
    case DType::kQ4_1:
      return repack_quantized<DType::kQ4_1>(source, into, place, panel_begin, panel_end);
    case DType::kQ5_0:
      return repack_quantized<DType::kQ5_0>(source, into, place, panel_begin, panel_end);
    case DType::kQ5_1:
      return repack_quantized<DType::kQ5_1>(source, into, place, panel_begin, panel_end);
    case DType::kQ8_0:
      return repack_quantized<DType::kQ8_0>(source, into, place, panel_begin, panel_end);
    default:
      return repack_dense(source, into, place, panel_begin, panel_end);
  }
}

}  // namespace linnet::cpu
