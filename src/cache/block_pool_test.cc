#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "base/random.h"

namespace linnet {
namespace {

std::vector<std::uint32_t> ids(const BlockRun& run) {
  std::vector<std::uint32_t> result;
  for (const BlockId block : run.ids()) result.push_back(static_cast<std::uint32_t>(block));
  return result;
}

TEST(BlockPool, HandsOutEachBlockOnce) {
  BlockPool pool(5);
  auto first = pool.take(2);
  auto second = pool.take(3);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(ids(*first), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(ids(*second), (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(pool.available(), 0);
  EXPECT_FALSE(pool.take(1).has_value());
  EXPECT_TRUE(pool.take(0).has_value());
  first->release();
  EXPECT_TRUE(first->empty());
  EXPECT_EQ(pool.used(), 3);
}

TEST(BlockPool, MovingMovesTheLease) {
  BlockPool pool(4);
  BlockRun kept;
  {
    BlockRun run = *pool.take(2);
    kept = std::move(run);
    EXPECT_EQ(pool.used(), 2);
  }
  EXPECT_EQ(pool.used(), 2);
  kept = *pool.take(1);
  EXPECT_EQ(pool.used(), 1);
  kept.append(*pool.take(2));
  EXPECT_EQ(kept.size(), 3);
  BlockRun empty;
  empty.append(std::move(kept));
  EXPECT_EQ(empty.size(), 3);
  EXPECT_EQ(pool.used(), 3);
}

TEST(BlockPool, SharedBlocksAreFreeWhenNobodyHoldsThem) {
  BlockPool pool(4);
  BlockRun run = *pool.take(3);
  BlockRun two = run.share(2);
  EXPECT_EQ(ids(two), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(pool.holders(BlockId{1}), 2);
  pool.hold(BlockId{2});
  run.release();
  EXPECT_EQ(pool.used(), 3);
  pool.let_go(BlockId{2});
  EXPECT_EQ(pool.used(), 2);
  two.release();
  EXPECT_EQ(pool.used(), 0);
  EXPECT_TRUE(run.share(0).empty());
}

TEST(BlockPool, EmptyPoolGivesNothing) {
  BlockPool pool(0);
  EXPECT_FALSE(pool.take(1).has_value());
}

TEST(BlockPoolDeathTest, ALeaseMustNotOutliveThePool) {
  EXPECT_DEATH(
      {
        BlockRun run;
        BlockPool pool(1);
        run = *pool.take(1);
      },
      "CHECK");
}

TEST(BlockPoolDeathTest, OnlyHeldBlocksAreHeldFurtherOrLetGo) {
  BlockPool pool(2);
  EXPECT_DEATH(pool.hold(BlockId{1}), "CHECK");
  EXPECT_DEATH(pool.let_go(BlockId{0}), "CHECK");
}

// Random takes, shares, appends and releases against counted numbers.
TEST(BlockPool, BehavesLikeCountedNumbers) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    BlockPool pool(static_cast<std::int32_t>(1 + rng.below(40)));
    std::vector<BlockRun> runs;
    for (int operation = 0; operation < 300; ++operation) {
      const std::size_t pick = runs.empty() ? 0 : rng.below(runs.size());
      if (runs.empty() || rng.chance(0.4)) {
        const auto count = static_cast<std::int32_t>(rng.below(8));
        const std::int32_t available = pool.available();
        auto run = pool.take(count);
        ASSERT_EQ(run.has_value(), count <= available);
        if (run) runs.push_back(std::move(*run));
      } else if (rng.chance(0.3)) {
        const auto count = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(runs[pick].size()) + 1));
        runs.push_back(runs[pick].share(count));
      } else if (runs.size() > 1 && rng.chance(0.3)) {
        std::vector<std::uint32_t> expected = ids(runs.front());
        const std::vector<std::uint32_t> tail = ids(runs.back());
        expected.insert(expected.end(), tail.begin(), tail.end());
        runs.front().append(std::move(runs.back()));
        runs.pop_back();
        ASSERT_EQ(ids(runs.front()), expected);
      } else {
        runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(pick));
      }
      std::map<std::uint32_t, std::int32_t> holders;
      for (const BlockRun& run : runs) {
        for (const std::uint32_t block : ids(run)) ++holders[block];
      }
      ASSERT_EQ(holders.size(), static_cast<std::size_t>(pool.used())) << "seed " << seed;
      for (const auto& [block, count] : holders) ASSERT_EQ(pool.holders(BlockId{block}), count) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace linnet
