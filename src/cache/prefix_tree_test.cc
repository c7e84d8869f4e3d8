#include "cache/prefix_tree.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace linnet {
namespace {

constexpr std::int32_t kBlock = 4;

std::vector<TokenId> tokens_of(const std::string& text) {
  std::vector<TokenId> tokens;
  for (const char letter : text) tokens.push_back(TokenId{letter});
  return tokens;
}

struct Rig {
  explicit Rig(std::int32_t blocks, PrefixTreeOptions options = {.block_tokens = kBlock, .blocks_max = 1000})
      : pool(blocks), tree(pool, options) {}

  void put(const std::string& text, PrefixUse use = {.name_space = "n"}) {
    const auto count = static_cast<std::int32_t>((text.size() + kBlock - 1) / kBlock);
    ASSERT_TRUE(tree.make_room(count));
    tree.put(use, tokens_of(text), *pool.take(count));
  }
  std::int32_t match(const std::string& text, PrefixUse use = {.name_space = "n"}) {
    return tree.take(use, tokens_of(text), static_cast<std::int32_t>(text.size())).tokens();
  }

  BlockPool pool;
  PrefixTree tree;
};

TEST(PrefixTree, MatchesTheLongestBeginning) {
  Rig rig(20);
  rig.put("abcdefghij");
  rig.put("abcdEFGH");
  struct Case {
    std::string prompt;
    std::int32_t tokens;
  };
  for (const Case& c : std::vector<Case>{{"abcdefghij", 10},
                                         {"abcdefghijk", 10},
                                         {"abcdefghi", 9},
                                         {"abcdefgh", 8},
                                         {"abcdefgX", 7},
                                         {"abcdEFGHij", 8},
                                         {"abcdEfgh", 5},
                                         {"abcd", 4},
                                         {"abc", 3},
                                         {"Xbcd", 0},
                                         {"", 0}}) {
    EXPECT_EQ(rig.match(c.prompt), c.tokens) << c.prompt;
  }
  EXPECT_EQ(rig.tree.take({.name_space = "n"}, tokens_of("abcdefghij"), 9).tokens(), 9);
  EXPECT_EQ(rig.tree.size(), 4) << "the first block is there once";
  EXPECT_EQ(rig.pool.used(), 4);
}

TEST(PrefixTree, ALeaseSharesWholeBlocksAndNamesThePartToCopy) {
  Rig rig(20);
  rig.put("abcdefghij");
  const PrefixLease lease = rig.tree.take({.name_space = "n"}, tokens_of("abcdefgXYZ"), 9);
  EXPECT_EQ(lease.tokens(), 7);
  EXPECT_EQ(lease.whole_tokens(), 4);
  ASSERT_EQ(lease.whole().size(), 1);
  EXPECT_EQ(lease.whole().ids()[0], BlockId{0});
  EXPECT_EQ(lease.partial(), BlockId{1});
  EXPECT_EQ(rig.pool.holders(BlockId{1}), 2);
}

TEST(PrefixTree, ALongerTailTakesThePlaceOfAShorterOne) {
  Rig rig(20);
  rig.put("abcdef");
  rig.put("abcdefg");
  EXPECT_EQ(rig.tree.size(), 2);
  EXPECT_EQ(rig.match("abcdefgh"), 7);
  rig.put("abcdef");
  EXPECT_EQ(rig.match("abcdefgh"), 7) << "and a shorter one adds nothing";
  rig.put("abcdefghij");
  EXPECT_EQ(rig.tree.size(), 3);
  EXPECT_EQ(rig.tree.entries().size(), 1U);
  EXPECT_EQ(rig.pool.used(), 3);
}

TEST(PrefixTree, OneNamespaceNeverSeedsAnother) {
  Rig rig(20);
  rig.put("abcdefgh", {.name_space = "n"});
  EXPECT_EQ(rig.match("abcdefgh", {.name_space = "m"}), 0);
  EXPECT_EQ(rig.match("abcdefgh", {.name_space = ""}), 0);
  rig.put("abcdefgh", {.name_space = "m"});
  EXPECT_EQ(rig.match("abcdefgh", {.name_space = "m"}), 8);
  EXPECT_EQ(rig.pool.used(), 4);
}

TEST(PrefixTree, PinnedBlocksAreNotEvictedAndRoomIsMadeWhollyOrNotAtAll) {
  Rig rig(4);
  rig.put("abcdefgh");
  rig.put("ABCDEFGH");
  PrefixLease lease = rig.tree.take({.name_space = "n"}, tokens_of("abcdefgh"), 8);
  EXPECT_FALSE(rig.tree.make_room(3));
  EXPECT_EQ(rig.match("ABCDEFGH"), 8) << "nothing was evicted in vain";
  EXPECT_TRUE(rig.tree.make_room(2));
  EXPECT_EQ(rig.match("abcdefgh"), 8);
  EXPECT_EQ(rig.match("ABCDEFGH"), 0);
  EXPECT_EQ(rig.tree.evicted(), 2U);
  lease = {};
  EXPECT_TRUE(rig.tree.make_room(4));
  EXPECT_EQ(rig.tree.size(), 0);
  EXPECT_FALSE(rig.tree.make_room(5));
}

TEST(PrefixTree, EvictsFromTheEnds) {
  Rig rig(6);
  rig.put("abcdefghijkl");
  ASSERT_TRUE(rig.tree.make_room(4));
  EXPECT_EQ(rig.match("abcdefghijkl"), 8);
}

TEST(PrefixTree, WhatWasUsedLongestAgoGoesFirst) {
  Rig rig(3);
  std::int64_t second = 0;
  const auto now = [&] { return PrefixUse{.name_space = "n", .now = std::chrono::seconds(++second)}; };
  for (const char* text : {"aaaa", "bbbb", "cccc"}) rig.put(text, now());
  EXPECT_EQ(rig.match("aaaa", now()), 4);
  rig.put("dddd", now());
  rig.put("eeee", now());
  std::vector<std::int32_t> left;
  for (const char* text : {"aaaa", "bbbb", "cccc", "dddd", "eeee"}) left.push_back(rig.match(text, now()));
  EXPECT_EQ(left, (std::vector<std::int32_t>{4, 0, 0, 4, 4}));
}

TEST(PrefixTree, OfEqualAgeWhatCostsLeastToComputeGoesFirst) {
  Rig rig(5, {.block_tokens = kBlock, .blocks_max = 5, .token_cost = 1, .token_cost_context = 1});
  rig.put("abcdefghijkl");  // three blocks: the last one costs most
  rig.put("ABCD");
  rig.put("XY");
  ASSERT_TRUE(rig.tree.make_room(1));
  EXPECT_EQ(rig.match("XY"), 0) << "two tokens";
  ASSERT_TRUE(rig.tree.make_room(2));
  EXPECT_EQ(rig.match("ABCD"), 0) << "no context";
  EXPECT_EQ(rig.match("abcdefghijkl"), 12);
}

TEST(PrefixTree, WhoComesBackIsKeptLonger) {
  Rig rig(2);
  rig.put("aaaa", {.name_space = "n", .returns = true});
  rig.put("bbbb");
  ASSERT_TRUE(rig.tree.make_room(1));
  EXPECT_EQ(rig.match("aaaa"), 4);
  EXPECT_EQ(rig.match("bbbb"), 0);
}

TEST(PrefixTree, HoldsNoMoreBlocksThanItMay) {
  Rig rig(20, {.block_tokens = kBlock, .blocks_max = 3});
  rig.put("abcdefgh");
  rig.put("ABCDEFGH");
  EXPECT_EQ(rig.tree.size(), 3);
  EXPECT_EQ(rig.match("ABCDEFGH"), 8);
  EXPECT_EQ(rig.match("abcdefgh"), 4);
  rig.put("abcdefghijklmnop");
  EXPECT_EQ(rig.tree.size(), 3);
  EXPECT_EQ(rig.match("abcdefghijklmnop"), 12) << "what does not fit is left out at the end";
  EXPECT_EQ(rig.pool.used(), 3);
  Rig off(20, {.block_tokens = kBlock, .blocks_max = 0});
  off.put("abcdefgh");
  EXPECT_EQ(off.match("abcdefgh"), 0);
  EXPECT_EQ(off.pool.used(), 0);
}

TEST(PrefixTree, EntriesSayWhatIsThereAndCanBeRemoved) {
  Rig rig(20);
  rig.put("abcdefghij", {.name_space = "n", .now = std::chrono::seconds(1)});
  rig.put("abcdXY", {.name_space = "n", .now = std::chrono::seconds(2)});
  const PrefixLease lease = rig.tree.take({.name_space = "n", .now = std::chrono::seconds(3)}, tokens_of("abcdXYZ"), 7);
  rig.tree.record_hit(lease);
  const std::vector<PrefixEntry> entries = rig.tree.entries();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].tokens, 10);
  EXPECT_EQ(entries[0].blocks, 3);
  EXPECT_EQ(entries[0].own_blocks, 2);
  EXPECT_EQ(entries[0].hits, 0U);
  EXPECT_EQ(entries[1].tokens, 6);
  EXPECT_EQ(entries[1].own_blocks, 1);
  EXPECT_EQ(entries[1].hits, 1U);
  EXPECT_EQ(entries[1].last_use, std::chrono::seconds(3));
  EXPECT_EQ(entries[1].name_space, "n");
  EXPECT_TRUE(rig.tree.remove(entries[1].id)) << "also while it is pinned";
  EXPECT_FALSE(rig.tree.remove(entries[1].id));
  EXPECT_EQ(rig.match("abcdXY"), 4);
  EXPECT_EQ(rig.match("abcdefghij"), 10);
  rig.tree.record_hit(lease);  // of what is gone: nothing
  rig.tree.clear();
  EXPECT_EQ(rig.tree.size(), 0);
  EXPECT_EQ(rig.pool.used(), 2) << "the lease's";
}

}  // namespace
}  // namespace linnet
