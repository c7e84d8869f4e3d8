#include <immintrin.h>

#include "backends/cpu/kernels/probe_kernels.h"

namespace linnet::cpu {
namespace {

void read(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kAhead = 2048;
  __m512i sums[4] = {};
  for (std::size_t i = 0; i + 256 <= bytes; i += 256) {
    for (std::size_t j = 0; j < 4; ++j) {
      sums[j] = _mm512_xor_si512(sums[j], _mm512_load_si512(data + i + j * 64));
      _mm_prefetch(reinterpret_cast<const char*>(data + i + j * 64 + kAhead), _MM_HINT_T0);
    }
  }
  for (__m512i& sum : sums) asm volatile("" : "+v"(sum));
}

double multiply(int rounds) {
  constexpr int kVectors = 12;  // hides the latency of 4 cycles on two units, with room to spare
  __m512 sums[kVectors];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  __m512 a = _mm512_set1_ps(1.0F);
  __m512 b = _mm512_set1_ps(0.5F);
  asm volatile("" : "+v"(a), "+v"(b));
  for (int round = 0; round < rounds; ++round) {
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, b, a);
  }
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
  return 2.0 * 16 * kVectors * rounds;
}

}  // namespace

ProbeKernels probe_kernels_avx512() { return {read, multiply}; }

}  // namespace linnet::cpu
