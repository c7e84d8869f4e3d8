#include "backends/cpu/probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>

#include "backends/cpu/kernels/kernel_set.h"
#include "backends/cpu/pool.h"
#include "backends/cpu/region.h"
#include "base/check.h"

namespace linnet::cpu {
namespace {

constexpr double kReadBytesMin = 16e6;
constexpr double kReadBytesMax = 1e9;
constexpr int kMeasurements = 5;

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
  const Result<const KernelSet*> set = choose_kernel_set(kernels);
  CHECK_MSG(set.ok(), std::string(kernels));
  const ProbeKernels probes = (*set)->probe();
  const MachineProbe probe{.bandwidth_gb_s = bandwidth(pool, probes, bytes), .matrix_tflop_s = matrix_rate(pool, probes)};
  pool.end_step();
  return probe;
}

}  // namespace linnet::cpu
