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

constexpr std::int32_t kGenerate = 24;

// Prompts of different lengths: less than a block, some hundred tokens, and more than two splits of attention (512 keys each).
// Answers of llama.cpp, over and over, serve as text.
std::vector<DrivenSequence> five_prompts(std::int32_t chunk) {
  const std::size_t lengths[] = {0, 45, 100, 190, 1100};
  std::vector<TokenId> text;
  const std::vector<GoldenAnswer> goldens = read_golden_answers();
  while (text.size() < 1100) {
    for (const GoldenAnswer& golden : goldens) text.insert(text.end(), golden.answer.begin(), golden.answer.end());
  }
  std::vector<DrivenSequence> sequences;
  for (std::size_t i = 0; i < goldens.size(); ++i) {
    DrivenSequence sequence{.tokens = goldens[i].prompt, .chunk = chunk, .generate = kGenerate};
    if (i == 0) sequence.tokens.resize(7);
    sequence.tokens.insert(sequence.tokens.end(), text.begin(), text.begin() + static_cast<std::ptrdiff_t>(lengths[i % 5]));
    sequence.prompt_count = static_cast<std::int32_t>(sequence.tokens.size());
    sequences.push_back(std::move(sequence));
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
  for (DrivenSequence& sequence : five_prompts(chunk)) {
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
  std::vector<DrivenSequence> together = five_prompts(0);
  SequenceDriver(*executor_).run(together, 2);
  expect_equal(reference_, together, "together");
}

TEST_F(Invariance, ChunkedEqualsWhole) {
  for (const std::int32_t chunk : {1, 7, 64}) {
    expect_equal(reference_, alone(*executor_, chunk, 3), "chunks of " + std::to_string(chunk));
  }
}

TEST_F(Invariance, ChunkedTogetherEqualsWholeAlone) {
  std::vector<DrivenSequence> together = five_prompts(0);
  const std::int32_t chunks[] = {1, 7, 64, 33, 5};
  for (std::size_t i = 0; i < together.size(); ++i) together[i].chunk = chunks[i % 5];
  SequenceDriver(*executor_).run(together, 4);
  expect_equal(reference_, together, "mixed chunks, together");
}

TEST_F(Invariance, ThreadsDoNotMatter) {
  for (const int threads : {1, 3, 4}) {
    const std::unique_ptr<cpu::CpuExecutor> other = load_demo_executor(threads);
    std::vector<DrivenSequence> together = five_prompts(64);
    SequenceDriver(*other).run(together, 5);
    expect_equal(reference_, together, std::to_string(threads) + " threads");
  }
}

}  // namespace
}  // namespace linnet
