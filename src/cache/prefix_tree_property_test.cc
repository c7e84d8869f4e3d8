// Random conversations that branch and return, against a list of everything that was ever put.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cache/prefix_tree.h"

namespace linnet {
namespace {

using Tokens = std::vector<TokenId>;

struct Said {
  std::string name_space;
  Tokens tokens;
};

struct Pinned {
  PrefixLease lease;
  std::string name_space;
  Tokens tokens;  // that it holds
};

class Conversations {
 public:
  explicit Conversations(std::uint64_t seed) : rng_(seed) {
    block_ = static_cast<std::int32_t>(1 + rng_.below(6));
    blocks_max_ = rng_.chance(0.3) ? kBlocks : static_cast<std::int32_t>(rng_.below(kBlocks));
  }

  void run() {
    BlockPool pool(kBlocks);
    PrefixTree tree(pool, {.block_tokens = block_, .blocks_max = blocks_max_, .token_cost_context = 0.1});
    content_.assign(kBlocks, {});
    for (int turn = 0; turn < 300 && !testing::Test::HasFatalFailure(); ++turn) {
      take_turn(pool, tree);
      if (!pinned_.empty() && rng_.chance(0.4)) {
        pinned_.erase(pinned_.begin() + static_cast<std::ptrdiff_t>(rng_.below(pinned_.size())));
      }
      if (rng_.chance(0.05)) tree.make_room(static_cast<std::int32_t>(rng_.below(kBlocks + 2)));
      if (rng_.chance(0.02)) tree.clear();
      check(pool, tree);
    }
    pinned_.clear();
    ASSERT_EQ(pool.used(), tree.size()) << "a lease was not released";
    ASSERT_TRUE(tree.make_room(kBlocks));
    ASSERT_EQ(tree.size(), 0);
  }

 private:
  static constexpr std::int32_t kBlocks = 40;

  // A new beginning, or what was said before, cut anywhere; then something more.
  Said random_prompt() {
    Said prompt{.name_space = std::string(1, static_cast<char>('a' + rng_.below(2))), .tokens = {}};
    if (!said_.empty() && rng_.chance(0.8)) {
      prompt = said_[rng_.below(said_.size())];
      if (rng_.chance(0.5)) prompt.tokens.resize(rng_.below(prompt.tokens.size() + 1));
      if (rng_.chance(0.1)) prompt.name_space = "c";
    }
    for (std::uint64_t more = 1 + rng_.below(12); more-- > 0;) prompt.tokens.push_back(TokenId(rng_.below(3)));
    if (prompt.tokens.size() > 60) prompt.tokens.resize(60);
    return prompt;
  }

  void take_turn(BlockPool& pool, PrefixTree& tree) {
    const Said prompt = random_prompt();
    const PrefixUse use{.name_space = prompt.name_space, .returns = rng_.chance(0.2)};
    const auto most = static_cast<std::int32_t>(prompt.tokens.size()) - 1;
    PrefixLease lease = tree.take(use, prompt.tokens, most);
    ASSERT_LE(lease.tokens(), most);
    ASSERT_LE(lease.tokens(), longest_said(prompt, most));
    if (blocks_max_ == kBlocks && tree.evicted() == 0 && !cleared_) {
      ASSERT_EQ(lease.tokens(), longest_said(prompt, most));
    }
    check_content(prompt, lease);
    const auto all = static_cast<std::int32_t>(prompt.tokens.size() + static_cast<std::size_t>(block_) - 1) / block_;
    if (!tree.make_room(all - lease.whole().size())) lease.drop_partial();
    if (!tree.make_room(all - lease.whole().size())) return;
    if (rng_.chance(0.3)) {
      PrefixLease pin = tree.take(use, prompt.tokens, most);
      Tokens held(prompt.tokens.begin(), prompt.tokens.begin() + pin.tokens());
      pinned_.push_back({.lease = std::move(pin), .name_space = prompt.name_space, .tokens = std::move(held)});
    }
    BlockRun blocks = lease.take_whole();
    const auto shared = static_cast<std::size_t>(blocks.size());
    auto rest = pool.take(all - blocks.size());
    if (!rest) return;
    blocks.append(std::move(*rest));
    for (std::size_t index = shared; index < blocks.ids().size(); ++index) write(prompt, blocks.ids()[index], index);
    if (rng_.chance(0.1)) return;  // a run that fails: its KV does not come back
    tree.put(use, prompt.tokens, std::move(blocks));
    said_.push_back(prompt);
  }

  // What a block holds is what its row wrote there: the whole history up to its last token.
  void write(const Said& prompt, BlockId block, std::size_t index) {
    const std::size_t end = std::min(prompt.tokens.size(), (index + 1) * static_cast<std::size_t>(block_));
    content_[index_of(block)] = {
        .name_space = prompt.name_space,
        .tokens = Tokens(prompt.tokens.begin(), prompt.tokens.begin() + static_cast<std::ptrdiff_t>(end))};
  }

  void check_content(const Said& prompt, const PrefixLease& lease) {
    std::size_t end = 0;
    const auto holds = [&](BlockId block, std::size_t tokens) {
      const Said& held = content_[index_of(block)];
      ASSERT_EQ(held.name_space, prompt.name_space);
      ASSERT_GE(held.tokens.size(), tokens);
      ASSERT_TRUE(
          std::equal(prompt.tokens.begin(), prompt.tokens.begin() + static_cast<std::ptrdiff_t>(tokens), held.tokens.begin()));
    };
    for (const BlockId block : lease.whole().ids()) holds(block, end += static_cast<std::size_t>(block_));
    ASSERT_EQ(end, static_cast<std::size_t>(lease.whole_tokens()));
    if (lease.partial()) holds(*lease.partial(), static_cast<std::size_t>(lease.tokens()));
  }

  std::int32_t longest_said(const Said& prompt, std::int32_t most) const {
    std::ptrdiff_t longest = 0;
    for (const Said& other : said_) {
      if (other.name_space != prompt.name_space) continue;
      const auto differs = std::mismatch(prompt.tokens.begin(), prompt.tokens.end(), other.tokens.begin(), other.tokens.end());
      longest = std::max(longest, differs.first - prompt.tokens.begin());
    }
    return static_cast<std::int32_t>(std::min<std::ptrdiff_t>(longest, most));
  }

  void check(const BlockPool& pool, const PrefixTree& tree) {
    cleared_ = cleared_ || tree.size() == 0;
    ASSERT_LE(tree.size(), blocks_max_);
    std::int32_t own = 0;
    for (const PrefixEntry& entry : tree.entries()) {
      ASSERT_EQ(entry.blocks, (entry.tokens + block_ - 1) / block_);
      ASSERT_LE(entry.own_blocks, entry.blocks);
      own += entry.own_blocks;
    }
    ASSERT_LE(own, tree.size());
    for (const Pinned& pin : pinned_) {
      check_content({.name_space = pin.name_space, .tokens = pin.tokens}, pin.lease);
      for (const BlockId block : pin.lease.whole().ids()) ASSERT_GE(pool.holders(block), 1);
    }
  }

  Rng rng_;
  std::int32_t block_ = 1;
  std::int32_t blocks_max_ = 0;
  std::vector<Said> said_;     // everything that was put
  std::vector<Said> content_;  // [block]
  std::vector<Pinned> pinned_;
  bool cleared_ = false;
};

TEST(PrefixTreeProperty, FindsWhatWasPutAndNothingElse) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Conversations(seed).run();
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace linnet
