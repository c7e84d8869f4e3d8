// Attention with AVX2, FMA and F16C.
#include <immintrin.h>

#include <cstdint>

#include "backends/cpu/kernels/attention_plain.h"

namespace linnet::cpu {
namespace {

// 2^x for x <= 0; below -127 it is zero. NaN stays NaN.
inline __m256 exp2_of(__m256 x) {
  const __m256 least = _mm256_set1_ps(-127.0F);
  const __m256 bounded = _mm256_max_ps(least, x);  // NaN goes through
  const __m256 whole = _mm256_floor_ps(bounded);
  const __m256 r = _mm256_sub_ps(bounded, whole);
  __m256 p = _mm256_set1_ps(0.0018775766948238015F);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.00898933969438076F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.05582631751894951F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.24015361070632935F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.6931530833244324F));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.9999999403953552F));
  const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127)), 23);
  const __m256 scaled = _mm256_mul_ps(p, _mm256_castsi256_ps(power));
  return _mm256_andnot_ps(_mm256_cmp_ps(x, least, _CMP_LE_OQ), scaled);
}

inline __m256 sign_bits() { return _mm256_set1_ps(-0.0F); }

struct Avx2Lanes {
  __m256 low;
  __m256 high;

  static Avx2Lanes load(const float* address) { return {_mm256_loadu_ps(address), _mm256_loadu_ps(address + 8)}; }
  static void store(float* address, Avx2Lanes x) {
    _mm256_storeu_ps(address, x.low);
    _mm256_storeu_ps(address + 8, x.high);
  }
  static Avx2Lanes splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static Avx2Lanes from_halves(const std::uint16_t* halves) {
    const auto* const source = reinterpret_cast<const __m128i*>(halves);
    return {_mm256_cvtph_ps(_mm_loadu_si128(source)), _mm256_cvtph_ps(_mm_loadu_si128(source + 1))};
  }
  static Avx2Lanes add(Avx2Lanes a, Avx2Lanes b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
  static Avx2Lanes subtract(Avx2Lanes a, Avx2Lanes b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
  static Avx2Lanes multiply(Avx2Lanes a, Avx2Lanes b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
  static Avx2Lanes divide(Avx2Lanes a, Avx2Lanes b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
  static Avx2Lanes maximum(Avx2Lanes a, Avx2Lanes b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
  static Avx2Lanes multiply_add(Avx2Lanes acc, float factor, Avx2Lanes x) {
    const __m256 f = _mm256_set1_ps(factor);
    return {_mm256_fmadd_ps(f, x.low, acc.low), _mm256_fmadd_ps(f, x.high, acc.high)};
  }
  static Avx2Lanes magnitude(Avx2Lanes x) {
    return {_mm256_andnot_ps(sign_bits(), x.low), _mm256_andnot_ps(sign_bits(), x.high)};
  }
  static Avx2Lanes with_sign_of(Avx2Lanes sign, Avx2Lanes x) {
    const Avx2Lanes size = magnitude(x);
    return {_mm256_or_ps(_mm256_and_ps(sign_bits(), sign.low), size.low),
            _mm256_or_ps(_mm256_and_ps(sign_bits(), sign.high), size.high)};
  }
  static Avx2Lanes exp2_not_positive(Avx2Lanes x) { return {exp2_of(x.low), exp2_of(x.high)}; }
};

}  // namespace

AttentionKernel attention_kernel_avx2(std::int32_t head_dim) { return plain_kernel<Avx2Lanes>(head_dim); }

}  // namespace linnet::cpu
