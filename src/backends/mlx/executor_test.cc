#include "backends/mlx/executor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "weights/testing/is_error.h"
#include "weights/testing/tiny_llama.h"

namespace linnet::mlx_backend {
namespace {

using linnet::testing::is_error;

class MlxExecutorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<ModelFile>> file = open_model_file(path_.path());
    ASSERT_TRUE(file.ok()) << file.error().message;
    file_ = *std::move(file);
  }

  Result<std::unique_ptr<MlxExecutor>> create(const MlxExecutorOptions& options) { return MlxExecutor::create(*file_, options); }

  std::unique_ptr<MlxExecutor> load() {
    Result<std::unique_ptr<MlxExecutor>> executor =
        create({.device = DeviceKind::kCpu, .rows_max = 4, .memory_budget_bytes = 1U << 28U});
    EXPECT_TRUE(executor.ok()) << executor.error().message;
    return *std::move(executor);
  }

  testing::TempFile path_ = testing::tiny_llama_file({.layer_dtype = DType::kQ4_1});
  std::unique_ptr<ModelFile> file_;
};

RowPlan row(std::uint64_t sequence, std::int32_t position, std::int32_t begin, std::int32_t count) {
  return {.sequence = SequenceId{sequence}, .position = position, .samples = count, .input_begin = begin, .input_count = count};
}

std::vector<TokenId> tokens(std::int32_t first, std::int32_t count) {
  std::vector<TokenId> ids;
  for (std::int32_t i = 0; i < count; ++i) ids.push_back(static_cast<TokenId>((first + 7 * i) % 300));
  return ids;
}

std::vector<float> run(MlxExecutor& executor, const StepPlan& plan) {
  const std::vector<RowSampling> sampling(plan.rows.size(), RowSampling{.params = {.temperature = 0}});
  const Ticket ticket = executor.launch(plan);
  executor.sample(ticket, sampling);
  const Result<const StepResult*> result = executor.collect(ticket);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return {executor.logits().begin(), executor.logits().end()};
}

TEST_F(MlxExecutorTest, RefusesWhatItCannotDo) {
  EXPECT_TRUE(is_error(create({.device = DeviceKind::kCpu, .memory_budget_bytes = 1000}), ErrorCode::kTooLarge,
                       {"weights need", "--memory-budget"}));
  EXPECT_TRUE(
      is_error(create({.device = DeviceKind::kCpu, .context = 4096}), ErrorCode::kInvalidArgument, {"--context 4096", "(512)"}));
  if (!gpu_available()) {
    EXPECT_TRUE(is_error(create({.device = DeviceKind::kGpu}), ErrorCode::kUnsupported, {"--device gpu", "mlx-cuda-13"}));
  }
}

TEST_F(MlxExecutorTest, SaysWhatThePlannerNeeds) {
  const std::unique_ptr<MlxExecutor> executor = load();
  const ExecutorInfo& info = executor->info();
  EXPECT_EQ(info.vocabulary, file_->config().vocabulary);
  EXPECT_EQ(info.context_max, 512);
  EXPECT_EQ(info.block_tokens, 256);
  EXPECT_EQ(info.block_count, 4 * 2);  // four rows of 512 tokens
  EXPECT_NE(info.numerics_id.find("mlx-0.32.4-cpu"), std::string::npos) << info.numerics_id;
  EXPECT_EQ(executor->token_cost().kv_bytes, 2.0 * 2 * 2 * 32 * 4);  // layers, K and V, KV heads, head_dim, float32
}

TEST_F(MlxExecutorTest, AClonedSequenceContinuesAsTheFirst) {
  const std::unique_ptr<MlxExecutor> executor = load();
  const std::vector<TokenId> prompt = tokens(3, 20);
  const std::vector<TokenId> more = tokens(90, 2);
  run(*executor, {.rows = {row(1, 0, 0, 20)}, .tokens = prompt});
  StepPlan plan{.clones = {{.from = SequenceId{1}, .to = SequenceId{2}, .tokens = 20},
                           {.from = SequenceId{1}, .to = SequenceId{3}, .tokens = 12}},
                .rows = {row(1, 20, 0, 1), row(2, 20, 0, 1), row(3, 12, 1, 1)},
                .tokens = more};
  const std::vector<float> together = run(*executor, plan);
  const auto width = static_cast<std::ptrdiff_t>(executor->info().vocabulary);
  EXPECT_TRUE(std::equal(together.begin(), together.begin() + width, together.begin() + width));
  run(*executor, {.rows = {row(4, 0, 0, 12)}, .tokens = {prompt.begin(), prompt.begin() + 12}});
  const std::vector<float> alone = run(*executor, {.rows = {row(4, 12, 0, 1)}, .tokens = {more[1]}});
  EXPECT_EQ(std::vector<float>(together.begin() + 2 * width, together.end()), alone);
}

TEST_F(MlxExecutorTest, AReleasedSequenceStartsAfresh) {
  const std::unique_ptr<MlxExecutor> executor = load();
  const std::vector<float> first = run(*executor, {.rows = {row(1, 0, 0, 5)}, .tokens = tokens(1, 5)});
  executor->release(SequenceId{1});
  executor->release(SequenceId{99});  // never ran
  EXPECT_EQ(run(*executor, {.rows = {row(1, 0, 0, 5)}, .tokens = tokens(1, 5)}), first);
  EXPECT_EQ(run(*executor, {.rows = {row(1, 0, 0, 5)}, .tokens = tokens(1, 5)}), first);  // the same without
}

// What the engine's thread does with an executor that another thread has made.
TEST_F(MlxExecutorTest, RunsOnAnotherThreadThanItsLoaders) {
  const std::unique_ptr<MlxExecutor> executor = load();
  const std::vector<float> here = run(*executor, {.rows = {row(1, 0, 0, 9)}, .tokens = tokens(1, 9)});
  const std::unique_ptr<MlxExecutor> handed = load();
  std::vector<float> there;
  std::thread thread([&] { there = run(*handed, {.rows = {row(1, 0, 0, 9)}, .tokens = tokens(1, 9)}); });
  thread.join();
  EXPECT_EQ(there, here);
}

TEST_F(MlxExecutorTest, GivesLogprobsToTheRowsThatAsk) {
  const std::unique_ptr<MlxExecutor> executor = load();
  const StepPlan plan{.rows = {row(1, 0, 0, 1), row(2, 0, 1, 2)}, .tokens = tokens(1, 3)};
  std::vector<RowSampling> sampling(2, RowSampling{.params = {.temperature = 0}});
  sampling[1].params.logprobs = 3;
  const Ticket ticket = executor->launch(plan);
  executor->sample(ticket, sampling);
  const Result<const StepResult*> result = executor->collect(ticket);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ((*result)->tokens.size(), 3U);
  ASSERT_EQ((*result)->logprobs.size(), 2U);
  EXPECT_EQ((*result)->rows[1].logprobs_begin, 0);
}

}  // namespace
}  // namespace linnet::mlx_backend
