#include <cstdint>
#include <cstring>

#include "backends/cpu/kernels/probe_kernels.h"

namespace linnet::cpu {
namespace {

void read(const std::byte* data, std::size_t bytes) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + sizeof sums <= bytes; i += sizeof sums) {
    std::uint64_t words[8];
    std::memcpy(words, data + i, sizeof words);
    for (int j = 0; j < 8; ++j) sums[j] ^= words[j];
  }
  for (std::uint64_t& sum : sums) asm volatile("" : "+r"(sum));
}

double multiply(int rounds) {
  constexpr int kLanes = 64;
  float sums[kLanes] = {};
  float a = 1.0F;
  float b = 0.5F;
  asm volatile("" : "+m"(a), "+m"(b));
  for (int round = 0; round < rounds; ++round) {
    for (float& sum : sums) sum = sum * b + a;
  }
  for (float& sum : sums) asm volatile("" : "+m"(sum));
  return 2.0 * kLanes * rounds;
}

}  // namespace

ProbeKernels probe_kernels_portable() { return {read, multiply}; }

}  // namespace linnet::cpu
