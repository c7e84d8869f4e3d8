#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"

namespace linnet {
namespace {

std::vector<std::uint32_t> ids(const BlockRun& run) {
  std::vector<std::uint32_t> result;
  for (const BlockId block : run) result.push_back(static_cast<std::uint32_t>(block));
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

TEST(BlockPool, EmptyPoolGivesNothing) {
  BlockPool pool(0);
  EXPECT_FALSE(pool.take(1).has_value());
}

TEST(BlockPoolDeathTest, ARunMustNotOutliveThePool) {
  EXPECT_DEATH(
      {
        BlockRun run;
        BlockPool pool(1);
        run = *pool.take(1);
      },
      "CHECK");
}

// Random takes, appends and releases against sets of numbers.
TEST(BlockPool, BehavesLikeSets) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    BlockPool pool(static_cast<std::int32_t>(1 + rng.below(40)));
    std::vector<BlockRun> runs;
    for (int operation = 0; operation < 300; ++operation) {
      const std::size_t pick = runs.empty() ? 0 : rng.below(runs.size());
      if (runs.empty() || rng.chance(0.5)) {
        const auto count = static_cast<std::int32_t>(rng.below(8));
        const std::int32_t available = pool.available();
        auto run = pool.take(count);
        ASSERT_EQ(run.has_value(), count <= available);
        if (run) runs.push_back(std::move(*run));
      } else if (runs.size() > 1 && rng.chance(0.3)) {
        const std::vector<std::uint32_t> tail = ids(runs.back());
        std::vector<std::uint32_t> expected = ids(runs.front());
        expected.insert(expected.end(), tail.begin(), tail.end());
        runs.front().append(std::move(runs.back()));
        runs.pop_back();
        ASSERT_EQ(ids(runs.front()), expected);
      } else {
        runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(pick));
      }
      std::set<std::uint32_t> leased;
      std::size_t sizes = 0;
      for (const BlockRun& run : runs) {
        const std::vector<std::uint32_t> blocks = ids(run);
        ASSERT_EQ(blocks.size(), static_cast<std::size_t>(run.size()));
        leased.insert(blocks.begin(), blocks.end());
        sizes += blocks.size();
      }
      ASSERT_EQ(leased.size(), sizes) << "a block in two runs, seed " << seed;
      ASSERT_EQ(sizes, static_cast<std::size_t>(pool.used()));
      ASSERT_TRUE(leased.empty() || *leased.rbegin() < static_cast<std::uint32_t>(pool.size()));
    }
  }
}

}  // namespace
}  // namespace linnet
