#include "reference.h"

#include <cstddef>
#include <cstring>

#include "goldens.h"

namespace linnet {

using mlx_backend::MlxExecutor;

std::unique_ptr<ModelFile> open_model(const std::string& path) {
  Result<std::unique_ptr<ModelFile>> file = open_model_file(path);
  EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
  return file.ok() ? *std::move(file) : nullptr;
}

std::unique_ptr<MlxExecutor> load_reference(const ModelFile& file) {
  Result<std::unique_ptr<MlxExecutor>> executor =
      MlxExecutor::create(file, {.device = DeviceKind::kCpu, .memory_budget_bytes = std::uint64_t{1} << 30U});
  EXPECT_TRUE(executor.ok()) << (executor.ok() ? "" : executor.error().message);
  return executor.ok() ? *std::move(executor) : nullptr;
}

std::vector<std::vector<float>> run(MlxExecutor& executor, const std::vector<Feed>& feeds) {
  StepPlan plan;
  for (const Feed& feed : feeds) {
    const auto count = static_cast<std::int32_t>(feed.tokens.size());
    plan.rows.push_back({.sequence = SequenceId{feed.sequence},
                         .position = feed.position,
                         .samples = count,
                         .input_begin = static_cast<std::int32_t>(plan.tokens.size()),
                         .input_count = count});
    plan.tokens.insert(plan.tokens.end(), feed.tokens.begin(), feed.tokens.end());
  }
  const std::vector<RowSampling> sampling(feeds.size(), {.params = {.temperature = 0}});
  const Ticket ticket = executor.launch(plan);
  executor.sample(ticket, sampling);
  const Result<const StepResult*> result = executor.collect(ticket);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  std::vector<std::vector<float>> logits;
  auto at = executor.logits().begin();
  for (const Feed& feed : feeds) {
    const auto size = static_cast<std::ptrdiff_t>(feed.tokens.size()) * executor.info().vocabulary;
    logits.emplace_back(at, at + size);
    at += size;
  }
  return logits;
}

std::vector<float> run_one(MlxExecutor& executor, const Feed& feed) { return run(executor, {feed})[0]; }

::testing::AssertionResult same_bits(const std::vector<float>& ours, const std::vector<float>& golden) {
  if (ours.size() != golden.size()) return ::testing::AssertionFailure() << ours.size() << " logits, not " << golden.size();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (std::memcmp(&ours[i], &golden[i], sizeof(float)) == 0) continue;
    return ::testing::AssertionFailure() << "logit " << i << " of " << ours.size() << " is " << ours[i] << ", not " << golden[i]
                                         << "; " << provenance();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace linnet
