// What greedy rows would save if the head gave its largest logit alone: writing the logits once and reading them once. Google
// Benchmark; the argument is the vocabulary.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <random>
#include <vector>

#include "exec/sampler.h"

namespace linnet {
namespace {

std::vector<float> random_logits(std::size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

void greedy(benchmark::State& state) {
  const std::vector<float> logits = random_logits(static_cast<std::size_t>(state.range(0)));
  Sampler sampler(static_cast<std::int32_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(sampler.sample(logits, {.temperature = 0}, {}, 0));
}
BENCHMARK(greedy)->Arg(49152)->Arg(151936)->Unit(benchmark::kMicrosecond);

void write_logits(benchmark::State& state) {
  std::vector<float> logits(static_cast<std::size_t>(state.range(0)));
  float value = 0;
  for (auto _ : state) {
    value += 1;
    for (float& logit : logits) logit = value;
    benchmark::DoNotOptimize(logits.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(write_logits)->Arg(49152)->Arg(151936)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace linnet

BENCHMARK_MAIN();
