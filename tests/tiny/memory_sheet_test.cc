// What a model takes, by its headers: within the budget, and equal to what its load reserves.
#include "backends/cpu/memory_sheet.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "backends/cpu/executor.h"
#include "weights/model_file.h"
#include "weights/testing/tiny_llama.h"

namespace linnet::cpu {
namespace {

class MemorySheetOfTiny : public ::testing::Test {
 protected:
  MemorySheetOfTiny() : path_(linnet::testing::tiny_llama_file({.context = 2048})) {
    Result<std::unique_ptr<ModelFile>> opened = open_model_file(path_.path());
    EXPECT_TRUE(opened.ok());
    file_ = *std::move(opened);
  }

  Result<MemorySheet> plan(std::uint64_t budget, std::int32_t context = 0, std::int32_t rows = 8) {
    return plan_memory(*file_,
                       {.threads = 2, .context = context, .rows_max = rows, .tokens_max = 128, .memory_budget_bytes = budget});
  }

  const linnet::testing::TempFile path_;
  std::unique_ptr<ModelFile> file_;
};

TEST_F(MemorySheetOfTiny, IsWhatLoadReserves) {
  for (const std::uint64_t budget : {std::uint64_t{1} << 28, std::uint64_t{12} << 20}) {
    for (const std::int32_t threads : {1, 2, 3}) {
      const CpuExecutorOptions options{.threads = threads, .rows_max = 8, .tokens_max = 128, .memory_budget_bytes = budget};
      const Result<MemorySheet> sheet = plan_memory(*file_, options);
      ASSERT_TRUE(sheet.ok()) << sheet.error().message;
      // Its load checks the regions that it reserved against the sheet.
      const Result<std::unique_ptr<CpuExecutor>> executor = CpuExecutor::create(*file_, options);
      ASSERT_TRUE(executor.ok()) << executor.error().message;
      EXPECT_EQ((*executor)->memory().total(), sheet->total());
      EXPECT_EQ((*executor)->info().block_count, sheet->kv_blocks);
      EXPECT_EQ((*executor)->threads(), sheet->threads);
      EXPECT_LE(sheet->total(), budget);
    }
  }
}

TEST_F(MemorySheetOfTiny, AllRowsFitABudgetThatIsLargeEnoughAndOneByteLessTakesABlock) {
  const Result<MemorySheet> ample = plan(std::uint64_t{1} << 30);
  ASSERT_TRUE(ample.ok());
  EXPECT_EQ(ample->limits.context_max, 2048);
  EXPECT_EQ(ample->rows_that_fit(2048), 8);
  const Result<MemorySheet> exact = plan(ample->total());
  ASSERT_TRUE(exact.ok());
  EXPECT_EQ(exact->kv_blocks, ample->kv_blocks);
  const Result<MemorySheet> short_of_one = plan(ample->total() - 1);
  ASSERT_TRUE(short_of_one.ok());
  EXPECT_EQ(short_of_one->kv_blocks, ample->kv_blocks - 1);
}

TEST_F(MemorySheetOfTiny, TheLongestContextIsServedAndALongerOneRefused) {
  const Result<MemorySheet> ample = plan(std::uint64_t{1} << 30, 0, 1);
  ASSERT_TRUE(ample.ok());
  const Result<MemorySheet> tight = plan(ample->total() - ample->kv() / 2, 0, 1);
  ASSERT_TRUE(tight.ok());
  const std::int32_t longest = tight->kv_blocks * kBlockTokens;
  EXPECT_LT(longest, 2048);
  EXPECT_TRUE(plan(tight->budget, longest, 1).ok());
  const Result<MemorySheet> longer = plan(tight->budget, 2048, 1);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(longer.error().message.find("--memory-budget"), std::string::npos) << longer.error().message;
}

TEST_F(MemorySheetOfTiny, NamesWhatDoesNotFit) {
  const Result<MemorySheet> weights = plan(1000);
  ASSERT_FALSE(weights.ok());
  EXPECT_EQ(weights.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(weights.error().message.find("weights"), std::string::npos) << weights.error().message;
  const Result<MemorySheet> context = plan(std::uint64_t{1} << 30, 4096);
  ASSERT_FALSE(context.ok());
  EXPECT_EQ(context.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(context.error().param, "--context");
}

}  // namespace
}  // namespace linnet::cpu
