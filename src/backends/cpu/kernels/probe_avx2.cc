#include <immintrin.h>

#include "backends/cpu/kernels/probe_kernels.h"

namespace linnet::cpu {
namespace {

void read(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kAhead = 2048;
  __m256i sums[8] = {};
  for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
    for (std::size_t j = 0; j < 8; ++j) {
      sums[j] = _mm256_xor_si256(sums[j], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + j * 32)));
      if (j % 2 == 0) _mm_prefetch(reinterpret_cast<const char*>(data + i + j * 32 + kAhead), _MM_HINT_T0);
    }
  }
  for (__m256i& sum : sums) asm volatile("" : "+x"(sum));
}

double multiply(int rounds) {
  constexpr int kVectors = 12;  // hides the latency of 4 or 5 cycles on two units
  __m256 sums[kVectors];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  __m256 a = _mm256_set1_ps(1.0F);
  __m256 b = _mm256_set1_ps(0.5F);
  asm volatile("" : "+x"(a), "+x"(b));
  for (int round = 0; round < rounds; ++round) {
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, b, a);
  }
  for (__m256& sum : sums) asm volatile("" : "+x"(sum));
  return 2.0 * 8 * kVectors * rounds;
}

}  // namespace

ProbeKernels probe_kernels_avx2() { return {read, multiply}; }

}  // namespace linnet::cpu
