// Random rounds over mixtures of layers against layers fed from nothing, and a failure at every call.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "speculation/rollback.h"
#include "speculation/test_layers.h"

namespace linnet {
namespace {

using Layers = std::vector<std::unique_ptr<TestLayer>>;
using Histories = std::vector<std::vector<TokenId>>;  // of each row
using Make = std::unique_ptr<TestLayer> (*)(TestGroup&, std::size_t);

constexpr Make kRowKinds[] = {make_block_layer, make_window_layer, make_quantized_layer, make_recurrent_layer};
constexpr Make kKinds[] = {make_block_layer,     make_window_layer,     make_quantized_layer,
                           make_recurrent_layer, make_contiguous_layer, make_ring_layer};

Layers random_layers(Rng& rng, std::span<const Make> kinds, TestGroup& group, std::size_t rows) {
  Layers layers;
  for (std::uint64_t count = 1 + rng.below(6); count > 0; --count) layers.push_back(kinds[rng.below(kinds.size())](group, rows));
  return layers;
}

TokenId random_token(Rng& rng) { return TokenId{static_cast<std::int32_t>(rng.below(50'000))}; }

// Writes a window of drafts + 1 random tokens to each row; returns it.
Histories write_window(Rng& rng, const Layers& layers, std::size_t rows, std::int64_t drafts) {
  Histories window(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i <= drafts; ++i) {
      window[row].push_back(random_token(rng));
      for (const auto& layer : layers) layer->write(row, window[row].back());
    }
  }
  return window;
}

void append_kept(Histories& histories, const Histories& window, std::size_t row, std::int64_t keep) {
  histories[row].insert(histories[row].end(), window[row].begin(), window[row].begin() + keep);
}

// Each layer sees what one sees that was fed the row's history from nothing.
void expect_equal_to_fresh(const Layers& layers, const Histories& histories, const std::string& where) {
  for (const auto& layer : layers) {
    for (std::size_t row = 0; row < histories.size(); ++row) {
      TestGroup group;
      const std::unique_ptr<TestLayer> fresh = layer->fresh(group, 1);
      for (const TokenId token : histories[row]) fresh->write(0, token);
      ASSERT_EQ(layer->seen(row), fresh->seen(0)) << where << ", " << layer->name() << ", row " << row;
    }
  }
}

TEST(RollbackProperty, OneSequenceEqualsRecomputation) {
  std::int64_t refused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    TestGroup group;
    const Layers layers = random_layers(rng, kKinds, group, 1);
    auto transaction = *bind_cache_rollback(pointers_to(layers));
    Histories histories(1);
    for (int round = 0; round < 20; ++round) {
      const auto wanted = static_cast<std::int64_t>(rng.below(9));
      const bool fits = *transaction.can_begin(wanted);
      refused += fits ? 0 : 1;
      const std::int64_t drafts = fits ? wanted : 0;  // else plain decode
      ASSERT_EQ(transaction.begin(wanted).ok(), fits);
      const Histories window = write_window(rng, layers, 1, drafts);
      const auto accepted = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(drafts) + 1));
      ASSERT_EQ(transaction.resolve(accepted).ok(), fits);
      append_kept(histories, window, 0, accepted + 1);
      expect_equal_to_fresh(layers, histories, "seed " + std::to_string(seed) + ", round " + std::to_string(round));
    }
  }
  EXPECT_GT(refused, 100);  // rings filled up
}

TEST(RollbackProperty, RowsEqualRecomputation) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    TestGroup group;
    const std::size_t rows = 1 + rng.below(5);
    const Layers layers = random_layers(rng, kRowKinds, group, rows);
    auto transaction = *bind_row_cache_rollback(pointers_to(layers), static_cast<std::int64_t>(rows));
    Histories histories(rows);
    for (int round = 0; round < 20; ++round) {
      const auto drafts = static_cast<std::int64_t>(rng.below(7));
      ASSERT_TRUE(transaction.begin(drafts).ok());
      const Histories window = write_window(rng, layers, rows, drafts);
      std::vector<std::int64_t> accepted(rows);
      const auto same = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(drafts) + 1));
      const bool ragged = rng.chance(0.5);
      for (std::size_t row = 0; row < rows; ++row) {
        accepted[row] = ragged ? static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(drafts) + 1)) : same;
        append_kept(histories, window, row, accepted[row] + 1);
      }
      ASSERT_TRUE(transaction.resolve(accepted).ok());
      expect_equal_to_fresh(layers, histories, "seed " + std::to_string(seed) + ", round " + std::to_string(round));
    }
  }
}

// One group of rows, in rounds that alternate between all kinds of outcome.
struct Rounds {
  explicit Rounds(TestGroup& shared) : group(shared) {
    for (const Make make : kRowKinds) layers.push_back(make(group, kRows));
  }
  // The status of the first call that failed, if one did.
  Status run(Rng& rng, int count) {
    auto transaction = *bind_row_cache_rollback(pointers_to(layers), kRows);
    for (int round = 0; round < count; ++round) {
      const std::int64_t drafts = round % 4;
      const std::vector<std::int64_t> accepted =
          round % 3 == 0 ? std::vector<std::int64_t>{drafts, drafts} : std::vector<std::int64_t>{0, drafts / 2};
      Status status = transaction.begin(drafts);
      if (status.ok()) {
        const Histories window = write_window(rng, layers, kRows, drafts);
        status = transaction.resolve(accepted);
        for (std::size_t row = 0; row < kRows; ++row) append_kept(histories, window, row, accepted[row] + 1);
      }
      if (status.ok()) continue;
      expect_invalid(transaction);
      return status;
    }
    return {};
  }
  static void expect_invalid(SpeculativeTransaction<RowAcceptance>& transaction) {
    const std::string discard = "speculative state is invalid and must be discarded";
    EXPECT_EQ(transaction.can_begin(0).error().message, discard);
    EXPECT_EQ(transaction.begin(0).error().message, discard);
    EXPECT_EQ(transaction.resolve({}).error().message, discard);
  }

  static constexpr std::size_t kRows = 2;
  TestGroup& group;
  Layers layers;
  Histories histories = Histories(kRows);
};

TEST(RollbackProperty, AFailureAtAnyCallLeaksNothingAndStaysInItsGroup) {
  constexpr int kRounds = 12;
  std::int64_t every_call = 0;
  {
    TestGroup group;
    Rounds rounds(group);
    Rng rng(1);
    ASSERT_TRUE(rounds.run(rng, kRounds).ok());
    every_call = group.calls;
  }
  ASSERT_GT(every_call, 60);
  for (std::int64_t failing = 1; failing <= every_call; ++failing) {
    TestGroup neighbours;
    Rounds untouched(neighbours);
    Rng rng(1);
    ASSERT_TRUE(untouched.run(rng, 3).ok());
    TestGroup group{.failing = failing};
    {
      Rounds rounds(group);
      const Status status = rounds.run(rng, kRounds);
      ASSERT_FALSE(status.ok()) << failing;
      EXPECT_EQ(status.error().code, ErrorCode::kIo) << failing;  // the layer's own
      EXPECT_EQ(group.calls, failing) << "a layer was asked after the failure";
      expect_equal_to_fresh(untouched.layers, untouched.histories, "neighbours");
    }
    EXPECT_EQ(group.blocks_out, 0) << failing;
    ASSERT_TRUE(untouched.run(rng, 3).ok());
    expect_equal_to_fresh(untouched.layers, untouched.histories, "neighbours, later");
  }
}

// The same for one sequence, where layers that only trim take part.
TEST(RollbackProperty, AFailureAtAnyCallOfOneSequenceInvalidatesIt) {
  bool failed = true;
  for (std::int64_t failing = 1; failed; ++failing) {
    TestGroup group{.failing = failing};
    {
      Layers layers;
      for (const Make make : kKinds) layers.push_back(make(group, 1));
      auto transaction = *bind_cache_rollback(pointers_to(layers));
      Rng rng(2);
      failed = false;
      for (std::int64_t round = 0; round < 8 && !failed; ++round) {
        Status status = transaction.begin(2);
        if (status.ok()) {
          write_window(rng, layers, 1, 2);
          status = transaction.resolve(round % 3);
        }
        failed = !status.ok();
        if (!failed) continue;
        EXPECT_EQ(status.error().code, ErrorCode::kIo);
        EXPECT_EQ(transaction.can_begin(0).error().code, ErrorCode::kInternal);
        EXPECT_EQ(group.calls, failing);
      }
    }
    EXPECT_EQ(group.blocks_out, 0) << failing;
    ASSERT_LT(failing, 200);
  }
}

}  // namespace
}  // namespace linnet
