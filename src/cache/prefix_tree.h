// The prefix cache: KV of sequences that ended, found again by their tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "cache/block_pool.h"
#include "linnet/ids.h"

namespace linnet {

struct PrefixTreeOptions {
  std::int32_t block_tokens = 1;
  std::int32_t blocks_max = 0;  // that the tree holds; 0: it stays empty
  // Of computing a token again: cost + cost_context * its position.
  double token_cost = 1;
  double token_cost_context = 0;
};

// Who asks, and when.
struct PrefixUse {
  std::string_view name_space;
  Clock::Duration now{};
  bool returns = false;  // a client that said it comes back (a hint): what it leaves is kept longer
};

// The KV of the first tokens() tokens of a prompt, pinned while the lease lives: whole blocks to share, then perhaps a part of
// one to copy.
class PrefixLease {
 public:
  std::int32_t tokens() const { return tokens_; }
  // What the whole blocks hold.
  std::int32_t whole_tokens() const { return whole_tokens_; }
  bool empty() const { return tokens_ == 0; }
  const BlockRun& whole() const { return whole_; }
  // Its first tokens() - whole_tokens() tokens are meant.
  std::optional<BlockId> partial() const;

  BlockRun take_whole() { return std::move(whole_); }
  // Nothing but the whole blocks.
  void drop_partial();

 private:
  friend class PrefixTree;
  std::int32_t tokens_ = 0;
  std::int32_t whole_tokens_ = 0;
  std::uint64_t last_ = 0;  // serial of the node where it ends; 0: none
  BlockRun whole_;
  BlockRun partial_;  // at most one block
};

// A path from a root to a leaf.
struct PrefixEntry {
  std::uint64_t id = 0;  // of the leaf, never used again
  std::string name_space;
  std::int32_t tokens = 0;
  std::int32_t blocks = 0;      // of the whole path
  std::int32_t own_blocks = 0;  // of these, on no other entry's path
  std::uint64_t hits = 0;       // leases that ended on this path
  Clock::Duration last_use{};
};

// A tree of blocks for each namespace; a node is a block, and its way from the root spells the tokens whose KV it holds. Only
// leaves may be partly filled. Nodes are stored by block id, so memory is fixed at construction but for the namespaces' names,
// of which there are never more than blocks. A walk looks at each node at most once, whatever the shape.
// Engine's thread only. The pool outlives it.
// Invariants: 1. Of two siblings neither spells a beginning of the other. 2. The tree holds each of its blocks once; one that
// someone else holds, too, is not evicted. 3. size() <= blocks_max.
class PrefixTree {
 public:
  PrefixTree(BlockPool& pool, const PrefixTreeOptions& options);
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;
  ~PrefixTree() { clear(); }

  // The longest beginning of `prompt` whose KV is there, at most `tokens_max` tokens.
  PrefixLease take(const PrefixUse& use, std::span<const TokenId> prompt, std::int32_t tokens_max);
  // `lease` was used.
  void record_hit(const PrefixLease& lease);
  // Keeps the KV of `tokens`, which is in `blocks`, as far as there is room beside what is pinned. What is there already is not
  // kept twice.
  void put(const PrefixUse& use, std::span<const TokenId> tokens, BlockRun blocks);
  // Evicts until the pool has `count` free blocks. False, and nothing has happened, if that is not enough. What was used longest
  // ago and costs least to compute again goes first.
  bool make_room(std::int32_t count);

  std::vector<PrefixEntry> entries() const;
  // Forgets what only entry `id` has. False if there is none of that id.
  bool remove(std::uint64_t id);
  void clear();

  std::int32_t size() const { return size_; }         // blocks
  std::uint64_t evicted() const { return evicted_; }  // blocks, so far

 private:
  using Index = std::uint32_t;  // of a node: its block's id, or kNone
  static constexpr Index kNone = 0xffffffffU;

  struct Root {
    Index first_child = kNone;
    std::string_view name;
  };
  struct Node {
    std::int32_t tokens = 0;    // that it spells; 0: not in the tree
    std::int32_t position = 0;  // of the first of them
    std::int32_t children = 0;
    Index parent = kNone;
    Index first_child = kNone;
    Index previous = kNone;
    Index next = kNone;
    Root* root = nullptr;
    bool returns = false;
    double worth = 0;  // the least goes first
    Clock::Duration last_use{};
    std::uint64_t serial = 0;
    std::uint64_t hits = 0;
  };
  struct Found {
    Index node = kNone;
    std::int32_t common = 0;  // tokens
  };
  struct Candidate {
    double worth;
    Clock::Duration last_use;
    Index node;
  };
  // A node, and the whole blocks above it.
  struct Place {
    Root* root = nullptr;
    Index node = kNone;  // kNone: the root itself
    std::int32_t depth = 0;
  };

  std::span<TokenId> tokens_of(Index node);
  std::span<const TokenId> tokens_of(Index node) const;
  Index first_child(const Place& place) const;
  Found best_child(const Place& place, std::span<const TokenId> tokens) const;
  void touch(Index node, const PrefixUse& use);
  void insert(Place& place, BlockId block, std::span<const TokenId> tokens, const PrefixUse& use);
  void unlink(Index node);
  void unlink_upwards(Index leaf);
  void erase_empty_roots();
  // Chooses up to `count` nodes, leaves first.
  void choose_victims(std::int32_t count);
  void evict_victims();
  bool evictable(Index node) const { return pool_.holders(static_cast<BlockId>(node)) == 1; }
  PrefixEntry entry_of(Index leaf) const;

  BlockPool& pool_;
  const PrefixTreeOptions options_;
  std::vector<Node> nodes_;                         // by block id
  std::vector<TokenId> tokens_;                     // [block][token in block]
  std::map<std::string, Root, std::less<>> roots_;  // those with children
  std::vector<Candidate> heap_;                     // scratch of choose_victims()
  std::vector<Index> victims_;
  std::vector<std::int32_t> children_left_;
  std::int32_t size_ = 0;
  double least_worth_ = 0;  // grows with what is evicted, so that what is not used ages
  std::uint64_t serials_ = 0;
  std::uint64_t evicted_ = 0;
};

}  // namespace linnet
