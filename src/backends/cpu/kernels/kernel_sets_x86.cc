// The sets of x86 machines. Built without any of their instructions.
#include <cpuid.h>

#include <array>

#include "backends/cpu/kernels/kernels_portable.h"
#include "backends/cpu/kernels/kernels_x86.h"

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace linnet::cpu {
namespace {

constexpr KernelSet kAvx2Kernels = [] {
  KernelSet set = kPortableKernels;
  set.name = "avx2";
  set.repack = repack_avx2;
  set.round_rows = round_rows_avx2;
  set.linear_quantized = linear_quantized_avx2;
  set.linear_dense = linear_dense_avx2;
  set.swiglu = swiglu_avx2;
  set.exponential = exponential_avx2;
  set.rope = rope_avx2;
  set.add = add_avx2;
  set.attention = attention_kernel_avx2;
  set.kv_write = kv_write_avx2;
  set.probe = probe_kernels_avx2;
  return set;
}();

constexpr KernelSet kAvx512Kernels{
    .name = "avx512",
    .tiles = false,
    .repack = repack_avx512,
    .round_rows = round_rows_avx512,
    .linear_quantized = linear_quantized_avx512,
    .linear_dense = linear_dense_avx512,
    .rms_norm = rms_norm_avx512,
    .swiglu = swiglu_avx512,
    .exponential = exponential_avx512,
    .rope = rope_avx512,
    .add = add_avx512,
    .attention = attention_kernel_avx512,
    .kv_write = kv_write_avx512,
    .probe = probe_kernels_avx512,
};

constexpr KernelSet kAmxKernels = [] {
  KernelSet set = kAvx512Kernels;
  set.name = "amx";
  set.tiles = true;
  set.linear_quantized = linear_quantized_amx;
  set.attention = attention_kernel_amx;
  set.probe = probe_kernels_amx;
  return set;
}();

bool runs_avx2() {
  constexpr unsigned kF16c = 1U << 29;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kF16c) == 0) return false;
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("bmi2") != 0;
}

bool runs_avx512() {
  return runs_avx2() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512vnni") != 0;
}

bool has_tiles() {
  constexpr unsigned kBf16 = 1U << 22, kTile = 1U << 24, kInt8 = 1U << 25;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & (kBf16 | kTile | kInt8)) == (kBf16 | kTile | kInt8);
}

// Tile state is large, so the system gives it to processes that ask.
bool may_use_tiles() {
#ifdef __linux__
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

struct Runnable {
  std::array<const KernelSet*, 4> sets{};
  std::size_t count = 0;
};

Runnable detect() {
  Runnable runnable;
  if (runs_avx512()) {
    if (has_tiles() && may_use_tiles()) runnable.sets[runnable.count++] = &kAmxKernels;
    runnable.sets[runnable.count++] = &kAvx512Kernels;
  }
  if (runs_avx2()) runnable.sets[runnable.count++] = &kAvx2Kernels;
  runnable.sets[runnable.count++] = &kPortableKernels;
  return runnable;
}

}  // namespace

std::span<const KernelSet* const> runnable_kernel_sets() {
  static const Runnable runnable = detect();
  return {runnable.sets.data(), runnable.count};
}

void linear_quantized_amx(const PanelMatrix& weights, const Activations& x, const LinearOutput& out, const LinearShare& share) {
  if (x.rows >= kTileRowsMin) return linear_tiles_amx(weights, x, out, share);
  linear_quantized_avx512(weights, x, out, share);
}

}  // namespace linnet::cpu
