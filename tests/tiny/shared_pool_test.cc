// Executors that share kernel threads give the bits of each alone, also while one of them is still loading.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "backends/cpu/executor.h"
#include "sequence_driver.h"
#include "weights/model_file.h"
#include "weights/testing/tiny_llama.h"

namespace linnet {
namespace {

std::unique_ptr<ModelFile> open(const testing::TempFile& path) {
  Result<std::unique_ptr<ModelFile>> file = open_model_file(path.path());
  EXPECT_TRUE(file.ok());
  return *std::move(file);
}

// `pool`: null for its own threads. `loads`: the executor is made anew so many times, between runs.
std::vector<DrivenSequence> drive(const ModelFile& file, cpu::Pool* pool, int loads) {
  std::vector<DrivenSequence> all;
  for (int i = 0; i < loads; ++i) {
    const Result<std::unique_ptr<cpu::CpuExecutor>> executor = cpu::CpuExecutor::create(
        file, {.pool = pool, .threads = 2, .rows_max = 4, .tokens_max = 64, .memory_budget_bytes = 1U << 28});
    EXPECT_TRUE(executor.ok());
    (*executor)->adopt_thread();
    std::vector<DrivenSequence> sequences;
    for (const std::int32_t prompt : {3, 90}) {
      DrivenSequence sequence{.prompt_count = prompt, .chunk = 17, .generate = 12};
      for (std::int32_t t = 0; t < prompt; ++t) sequence.tokens.push_back(TokenId{t * 7 % file.config().vocabulary});
      sequences.push_back(sequence);
    }
    SequenceDriver(**executor).run(sequences);
    all.insert(all.end(), sequences.begin(), sequences.end());
  }
  return all;
}

void expect_same_bits(const std::vector<DrivenSequence>& one, const std::vector<DrivenSequence>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].tokens, other[i].tokens);
    EXPECT_EQ(one[i].logits, other[i].logits);
  }
}

TEST(SharedPool, GivesEachExecutorTheBitsOfAlone) {
  const testing::TempFile path_a = testing::tiny_llama_file({.context = 512});
  const testing::TempFile path_b = testing::tiny_llama_file({.layers = 3, .heads = 6, .kv_heads = 1, .context = 512});
  const std::unique_ptr<ModelFile> file_a = open(path_a);
  const std::unique_ptr<ModelFile> file_b = open(path_b);
  const int loads = 3;
  const std::vector<DrivenSequence> alone_a = drive(*file_a, nullptr, loads);
  const std::vector<DrivenSequence> alone_b = drive(*file_b, nullptr, loads);

  cpu::Pool pool({.threads = 2});
  std::vector<DrivenSequence> shared_a;
  std::thread other([&] { shared_a = drive(*file_a, &pool, loads); });
  std::vector<DrivenSequence> shared_b;
  std::thread another([&] { shared_b = drive(*file_b, &pool, loads); });
  other.join();
  another.join();
  expect_same_bits(alone_a, shared_a);
  expect_same_bits(alone_b, shared_b);
}

TEST(SharedPool, DecidesTheNumberOfThreads) {
  const testing::TempFile path = testing::tiny_llama_file({.context = 64});
  const std::unique_ptr<ModelFile> file = open(path);
  cpu::Pool pool({.threads = 3});
  const Result<std::unique_ptr<cpu::CpuExecutor>> executor =
      cpu::CpuExecutor::create(*file, {.pool = &pool, .threads = 1, .rows_max = 1, .tokens_max = 8});
  ASSERT_TRUE(executor.ok());
  EXPECT_EQ((*executor)->threads(), 3);
  EXPECT_EQ((*executor)->memory().threads, 3);
}

}  // namespace
}  // namespace linnet
