#include "backends/cpu/probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "backends/cpu/kernels/probe_kernels.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"

namespace linnet::cpu {
namespace {

constexpr double kReadBytesMin = 16e6;
constexpr double kReadBytesMax = 1e9;
constexpr int kMeasurements = 5;

ProbeKernels kernels_of(std::string_view name) {
  if (name == "amx") return probe_kernels_amx();
  if (name == "portable") return probe_kernels_portable();
  return probe_kernels_avx512();
}

// The best of a few: what the machine can do, not what it happened to be doing beside.
template <class Work>
double best_seconds(Pool& pool, const Work& work) {
  double best = 1e9;
  for (int i = 0; i < kMeasurements; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(work);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

double bandwidth(Pool& pool, const ProbeKernels& kernels, double wanted) {
  const auto bytes = static_cast<std::size_t>(std::clamp(wanted, kReadBytesMin, kReadBytesMax));
  const Result<Region> region = Region::reserve(bytes, "bandwidth probe");
  if (!region.ok()) return 0;
  region->touch(pool);
  const double seconds = best_seconds(pool, [&](int thread, int threads) {
    const Share share = share_of(static_cast<std::int64_t>(bytes), thread, threads, 4096);
    kernels.read(region->data() + share.begin, static_cast<std::size_t>(share.end - share.begin));
  });
  return static_cast<double>(bytes) / seconds / 1e9;
}

double matrix_rate(Pool& pool, const ProbeKernels& kernels) {
  constexpr int kRounds = 200'000;
  double operations = 0;
  const double seconds = best_seconds(pool, [&](int thread, int) {
    const double done = kernels.multiply(kRounds);
    if (thread == 0) operations = done;
  });
  return operations * pool.threads() / seconds / 1e12;
}

}  // namespace

MachineProbe probe_machine(int threads, std::string_view kernels, double bytes) {
  Pool pool({.threads = threads, .pin = true});
  pool.begin_step();
  const ProbeKernels probes = kernels_of(kernels);
  const MachineProbe probe{.bandwidth_gb_s = bandwidth(pool, probes, bytes), .matrix_tflop_s = matrix_rate(pool, probes)};
  pool.end_step();
  return probe;
}

}  // namespace linnet::cpu
