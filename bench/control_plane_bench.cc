// What the engine itself costs: microseconds of a step beside the executor's own time, at some numbers of decoding rows.
// Usage: control_plane_bench [ROWS...]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "engine/fake_executor.h"
#include "linnet/engine.h"

namespace linnet {
namespace {

constexpr std::int32_t kPromptTokens = 200;
constexpr std::int32_t kSteps = kStepRecordsMax;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void measure(std::int32_t rows) {
  FakeExecutorOptions fake;
  fake.info.step_rows_max = rows;
  fake.info.step_tokens_max = std::max(rows, 512);
  fake.info.block_count = rows * 64;
  fake.next_token = [](std::span<const TokenId>, const SamplingParams&, std::uint64_t) { return TokenId{1}; };
  SystemClock clock;
  Engine engine({.max_rows = rows, .max_waiting = rows}, std::make_unique<FakeExecutor>(fake), clock);
  std::vector<RequestHandle> handles;
  for (std::int32_t i = 0; i < rows; ++i) {
    std::vector<TokenId> prompt(kPromptTokens, TokenId{1 + i});
    handles.push_back(engine.submit({.prompt = std::move(prompt), .max_tokens = 2 * kSteps + 400}).value());
  }
  while (engine.stats().completion_tokens < static_cast<std::uint64_t>(rows) * 20 ||
         engine.recent_steps().back().prefill_rows > 0) {
    engine.step();
  }
  std::vector<double> turns;
  for (std::int32_t i = 0; i < kSteps; ++i) {
    const Clock::Duration begin = clock.now();
    engine.step();
    turns.push_back(std::chrono::duration<double, std::micro>(clock.now() - begin).count());
  }
  std::vector<double> plan;
  std::vector<double> commit;
  const std::vector<StepRecord> steps = engine.recent_steps();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    plan.push_back(steps[i].plan_us);
    commit.push_back(steps[i].commit_us);
    turns[i] -= steps[i].run_us;
  }
  std::printf("%4d rows: admit and plan %6.1f us, commit %6.1f us, the whole turn without the executor %6.1f us\n", rows,
              median(plan), median(commit), median(turns));
}

}  // namespace
}  // namespace linnet

int main(int argc, char** argv) {
  std::vector<int> rows;
  for (int i = 1; i < argc; ++i) rows.push_back(std::max(std::atoi(argv[i]), 1));
  if (rows.empty()) rows = {1, 8, 32, 64};
  for (const int count : rows) linnet::measure(count);
}
