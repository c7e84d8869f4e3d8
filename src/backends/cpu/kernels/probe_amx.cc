#include "backends/cpu/kernels/amx.h"
#include "backends/cpu/kernels/probe_kernels.h"

namespace linnet::cpu {
namespace {

double multiply(int rounds) {
  amx::TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.set(tile, 16, 64);
  amx::configure(config);
  amx::zero<4>();
  amx::zero<5>();
  amx::zero<6>();
  amx::zero<7>();
  for (int round = 0; round < rounds; ++round) {
    amx::dot_bf16<0, 4, 6>();
    amx::dot_bf16<1, 5, 6>();
    amx::dot_bf16<2, 4, 7>();
    amx::dot_bf16<3, 5, 7>();
  }
  amx::release();
  return 4.0 * 2 * 16 * 16 * 32 * rounds;
}

}  // namespace

ProbeKernels probe_kernels_amx() { return {probe_kernels_avx512().read, multiply}; }

}  // namespace linnet::cpu
