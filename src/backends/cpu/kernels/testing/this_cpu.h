// Which kernels tests can run on this machine. For tests alone: the product asks kernel_set.h.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace linnet::cpu {

inline bool this_cpu_has_avx512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

// Asks the system for tiles, for all threads that are made afterwards as well.
inline bool this_cpu_has_amx() {
#if defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool bf16_tiles = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1U) != 0 && (d >> 24 & 1U) != 0;
  return this_cpu_has_avx512() && bf16_tiles && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace linnet::cpu
