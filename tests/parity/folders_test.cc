// Tiny folders on the reference path against mlx-lm's own logits, bit for bit.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/mlx/executor.h"
#include "goldens.h"
#include "reference.h"
#include "weights/model_file.h"

namespace linnet {
namespace {

using mlx_backend::MlxExecutor;

void append(std::vector<float>& to, const std::vector<float>& more) { to.insert(to.end(), more.begin(), more.end()); }

class Parity : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(Parity, PrefillDecodeAndChunksAreMlxLms) {
  const GoldenCase& golden = GetParam();
  const std::unique_ptr<ModelFile> file = open_model(golden_path(golden.name));
  ASSERT_NE(file, nullptr);
  const std::unique_ptr<MlxExecutor> executor = load_reference(*file);
  ASSERT_NE(executor, nullptr);
  EXPECT_TRUE(same_bits(run_one(*executor, {.sequence = 1, .tokens = golden.prompt}), golden.prefill));
  std::vector<float> decode;
  auto position = static_cast<std::int32_t>(golden.prompt.size());
  for (const TokenId& token : golden.decoded)
    append(decode, run_one(*executor, {.sequence = 1, .position = position++, .tokens = {&token, 1}}));
  EXPECT_TRUE(same_bits(decode, golden.decode));
  std::vector<float> chunked;
  position = 0;
  for (const std::int32_t count : golden.chunks) {
    append(chunked,
           run_one(*executor,
                   {.sequence = 2,
                    .position = position,
                    .tokens =
                        std::span(golden.prompt).subspan(static_cast<std::size_t>(position), static_cast<std::size_t>(count))}));
    position += count;
  }
  EXPECT_TRUE(same_bits(chunked, golden.chunked));
}

INSTANTIATE_TEST_SUITE_P(Tiny, Parity, ::testing::ValuesIn(golden_cases()),
                         [](const ::testing::TestParamInfo<GoldenCase>& golden) { return golden.param.name; });

// Four rows in one step: two of them mlx-lm's own, whole and cut, one that takes a token back, one of other tokens.
TEST(Parity, RowsOfABatchAreThoseOfMlxLmAlone) {
  const GoldenCase golden = golden_cases().at(0);
  const std::unique_ptr<ModelFile> file = open_model(golden_path(golden.name));
  ASSERT_NE(file, nullptr);
  const std::unique_ptr<MlxExecutor> executor = load_reference(*file);
  const std::span<const TokenId> prompt = golden.prompt;
  const std::vector<TokenId> other(prompt.rbegin(), prompt.rend());
  const std::vector<float> alone = run_one(*executor, {.sequence = 9, .tokens = other});
  const auto first = static_cast<std::size_t>(golden.chunks[0]);
  const std::vector<TokenId> wrong{TokenId{1}, TokenId{2}};
  run(*executor, {{.sequence = 2, .tokens = prompt.first(first)}, {.sequence = 3, .tokens = prompt.first(11)}});
  run(*executor, {{.sequence = 3, .position = 11, .tokens = wrong}});
  const auto second = static_cast<std::size_t>(golden.chunks[1]);
  const std::vector<std::vector<float>> together =
      run(*executor, {{.sequence = 1, .tokens = prompt},
                      {.sequence = 2, .position = golden.chunks[0], .tokens = prompt.subspan(first, second)},
                      {.sequence = 3, .position = 11, .tokens = prompt.subspan(11)},
                      {.sequence = 4, .tokens = other}});
  EXPECT_TRUE(same_bits(together[0], golden.prefill));
  const auto width = static_cast<std::ptrdiff_t>(executor->info().vocabulary);
  const auto cut = golden.chunked.begin() + static_cast<std::ptrdiff_t>(first) * width;
  EXPECT_TRUE(same_bits(together[1], {cut, cut + static_cast<std::ptrdiff_t>(second) * width}));
  const Feed again{.sequence = 5, .position = 11, .tokens = prompt.subspan(11)};
  run_one(*executor, {.sequence = 5, .tokens = prompt.first(11)});
  EXPECT_TRUE(same_bits(together[2], run_one(*executor, again)));
  EXPECT_TRUE(same_bits(together[3], alone));
}

}  // namespace
}  // namespace linnet
