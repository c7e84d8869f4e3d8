// On the real demo model: a row's tokens and logits do not depend on its company, its chunks, its blocks or the number of
// threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "demo_model.h"
#include "golden_answers.h"
#include "sequence_driver.h"

namespace linnet {
namespace {

constexpr std::int32_t kGenerate = 16;

// Twenty prompts: less than a block, block ends and their neighbours, some hundred tokens, and more than two splits of attention
// (512 keys each). Answers of llama.cpp, over and over, serve as text.
std::vector<DrivenSequence> twenty_prompts(std::int32_t chunk) {
  constexpr std::size_t kLengths[] = {1, 2, 7, 31, 32, 33, 45, 63, 64, 65, 95, 96, 97, 128, 150, 190, 257, 511, 513, 1100};
  std::vector<TokenId> text;
  const std::vector<GoldenAnswer> goldens = read_golden_answers();
  while (text.size() < 1200) {
    for (const GoldenAnswer& golden : goldens) text.insert(text.end(), golden.answer.begin(), golden.answer.end());
  }
  std::vector<DrivenSequence> sequences;
  for (const std::size_t length : kLengths) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(sequences.size() * 5);  // no two begin alike
    sequences.push_back({.tokens = {begin, begin + static_cast<std::ptrdiff_t>(length)},
                         .prompt_count = static_cast<std::int32_t>(length),
                         .chunk = chunk,
                         .generate = kGenerate});
  }
  return sequences;
}

void expect_equal(const std::vector<DrivenSequence>& expected, const std::vector<DrivenSequence>& actual,
                  const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(expected[i].tokens, actual[i].tokens) << what << ", prompt " << i;
    ASSERT_EQ(expected[i].logits.size(), actual[i].logits.size());
    for (std::size_t t = 0; t < expected[i].logits.size(); ++t) {
      const std::vector<float>& a = expected[i].logits[t];
      const std::vector<float>& b = actual[i].logits[t];
      ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what << ", prompt " << i << ", token " << t;
    }
  }
}

std::vector<DrivenSequence> alone(cpu::CpuExecutor& executor, std::int32_t chunk, std::uint64_t shuffle_seed) {
  std::vector<DrivenSequence> results;
  for (DrivenSequence& sequence : twenty_prompts(chunk)) {
    std::vector<DrivenSequence> one{std::move(sequence)};
    SequenceDriver(executor).run(one, shuffle_seed);
    results.push_back(std::move(one[0]));
  }
  return results;
}

class Invariance : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    executor_ = load_demo_executor(2);
    reference_ = alone(*executor_, 0, 1);
  }
  static void TearDownTestSuite() { executor_.reset(); }

  static std::unique_ptr<cpu::CpuExecutor> executor_;
  static std::vector<DrivenSequence> reference_;  // alone, whole
};
std::unique_ptr<cpu::CpuExecutor> Invariance::executor_;
std::vector<DrivenSequence> Invariance::reference_;

TEST_F(Invariance, TogetherEqualsAlone) {
  std::vector<DrivenSequence> together = twenty_prompts(0);
  SequenceDriver(*executor_).run(together, 2);
  expect_equal(reference_, together, "together");
}

TEST_F(Invariance, ChunkedEqualsWhole) {
  for (const std::int32_t chunk : {1, 7, 64, 512}) {
    expect_equal(reference_, alone(*executor_, chunk, 3), "chunks of " + std::to_string(chunk));
  }
}

TEST_F(Invariance, ChunkedTogetherEqualsWholeAlone) {
  std::vector<DrivenSequence> together = twenty_prompts(0);
  const std::int32_t chunks[] = {1, 7, 64, 33, 5, 512};
  for (std::size_t i = 0; i < together.size(); ++i) together[i].chunk = chunks[i % 6];
  SequenceDriver(*executor_).run(together, 4);
  expect_equal(reference_, together, "mixed chunks, together");
}

TEST_F(Invariance, ThreadsDoNotMatter) {
  for (const int threads : {1, 3, 4}) {
    const std::unique_ptr<cpu::CpuExecutor> other = load_demo_executor(threads);
    std::vector<DrivenSequence> together = twenty_prompts(64);
    SequenceDriver(*other).run(together, 5);
    expect_equal(reference_, together, std::to_string(threads) + " threads");
  }
}

}  // namespace
}  // namespace linnet
