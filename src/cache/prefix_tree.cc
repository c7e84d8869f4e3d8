#include "cache/prefix_tree.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace linnet {
namespace {

constexpr double kReturnsFactor = 2;  // how much more the KV of a client that comes back is worth

}  // namespace

std::optional<BlockId> PrefixLease::partial() const {
  if (partial_.empty()) return std::nullopt;
  return partial_.ids().front();
}

void PrefixLease::drop_partial() {
  partial_.release();
  tokens_ = whole_tokens_;
}

PrefixTree::PrefixTree(BlockPool& pool, const PrefixTreeOptions& options) : pool_(pool), options_(options) {
  CHECK(options_.block_tokens >= 1 && options_.blocks_max >= 0);
  if (options_.blocks_max == 0) return;
  const auto blocks = static_cast<std::size_t>(pool_.size());
  nodes_.resize(blocks);
  tokens_.resize(blocks * static_cast<std::size_t>(options_.block_tokens));
  heap_.reserve(blocks);
  victims_.reserve(blocks);
  children_left_.resize(blocks);
}

std::span<TokenId> PrefixTree::tokens_of(Index node) {
  const auto block_tokens = static_cast<std::size_t>(options_.block_tokens);
  return std::span(tokens_).subspan(node * block_tokens, block_tokens);
}

std::span<const TokenId> PrefixTree::tokens_of(Index node) const {
  const auto block_tokens = static_cast<std::size_t>(options_.block_tokens);
  return std::span(tokens_).subspan(node * block_tokens, static_cast<std::size_t>(nodes_[node].tokens));
}

PrefixTree::Index PrefixTree::first_child(const Place& place) const {
  return place.node == kNone ? place.root->first_child : nodes_[place.node].first_child;
}

// The child that shares the longest beginning with `tokens`. A whole block in common is shared with one child only.
PrefixTree::Found PrefixTree::best_child(const Place& place, std::span<const TokenId> tokens) const {
  Found best;
  for (Index child = first_child(place); child != kNone; child = nodes_[child].next) {
    const std::span<const TokenId> spelled = tokens_of(child);
    const auto differs = std::mismatch(spelled.begin(), spelled.end(), tokens.begin(), tokens.end());
    const auto common = static_cast<std::int32_t>(differs.first - spelled.begin());
    if (common > best.common) best = {.node = child, .common = common};
    if (common == options_.block_tokens) break;
  }
  return best;
}

void PrefixTree::touch(Index node, const PrefixUse& use) {
  Node& touched = nodes_[node];
  const double tokens = touched.tokens;
  double cost = tokens * (options_.token_cost + options_.token_cost_context * (touched.position + tokens / 2));
  touched.returns = touched.returns || use.returns;
  if (touched.returns) cost *= kReturnsFactor;
  touched.worth = least_worth_ + cost;
  touched.last_use = use.now;
}

PrefixLease PrefixTree::take(const PrefixUse& use, std::span<const TokenId> prompt, std::int32_t tokens_max) {
  PrefixLease lease;
  const auto root = roots_.find(use.name_space);
  if (root == roots_.end()) return lease;
  const std::span<const TokenId> wanted = prompt.first(std::min(prompt.size(), static_cast<std::size_t>(tokens_max)));
  std::vector<BlockId> whole;
  Place place{.root = &root->second};
  while (true) {
    const Found found = best_child(place, wanted.subspan(static_cast<std::size_t>(lease.tokens_)));
    if (found.common == 0) break;
    touch(found.node, use);
    lease.tokens_ += found.common;
    lease.last_ = nodes_[found.node].serial;
    const BlockId block{found.node};
    if (found.common < options_.block_tokens) {
      lease.partial_ = pool_.share(std::span(&block, 1));
      break;
    }
    whole.push_back(block);
    lease.whole_tokens_ = lease.tokens_;
    place.node = found.node;
  }
  if (!whole.empty()) lease.whole_ = pool_.share(whole);
  return lease;
}

void PrefixTree::record_hit(const PrefixLease& lease) {
  const std::optional<BlockId> block =
      lease.partial() ? lease.partial() : (lease.whole_.empty() ? std::nullopt : std::optional(lease.whole_.ids().back()));
  if (!block) return;
  Node& node = nodes_[index_of(*block)];
  if (node.tokens > 0 && node.serial == lease.last_) ++node.hits;
}

void PrefixTree::put(const PrefixUse& use, std::span<const TokenId> tokens, BlockRun blocks) {
  const auto block_tokens = static_cast<std::size_t>(options_.block_tokens);
  CHECK(tokens.size() <= static_cast<std::size_t>(blocks.size()) * block_tokens);
  if (options_.blocks_max == 0 || tokens.empty()) return;
  const auto [root, made] = roots_.try_emplace(std::string(use.name_space));
  if (made) root->second.name = root->first;
  Place place{.root = &root->second};
  std::span<const TokenId> left = tokens;
  const auto next_block = [&] { return left.first(std::min(left.size(), block_tokens)); };
  Found found;
  while (!left.empty()) {
    found = best_child(place, next_block());
    if (found.common < static_cast<std::int32_t>(next_block().size())) break;
    touch(found.node, use);
    left = left.subspan(next_block().size());
    place = {.root = place.root, .node = found.node, .depth = place.depth + 1};
  }
  if (!left.empty() && found.common > 0 && found.common == nodes_[found.node].tokens) unlink(found.node);  // spelled by ours
  const auto needed = static_cast<std::int32_t>((left.size() + block_tokens - 1) / block_tokens);
  if (needed > options_.blocks_max - size_) {
    if (place.node != kNone) pool_.hold(static_cast<BlockId>(place.node));  // nothing above it goes, either
    choose_victims(needed - (options_.blocks_max - size_));
    evict_victims();
    if (place.node != kNone) pool_.let_go(static_cast<BlockId>(place.node));
  }
  while (!left.empty() && size_ < options_.blocks_max) {
    const std::span<const TokenId> spelled = next_block();
    insert(place, blocks.ids()[static_cast<std::size_t>(place.depth)], spelled, use);
    left = left.subspan(spelled.size());
  }
  erase_empty_roots();
}

void PrefixTree::insert(Place& place, BlockId block, std::span<const TokenId> tokens, const PrefixUse& use) {
  const auto index = static_cast<Index>(block);
  Node& node = nodes_[index];
  CHECK(node.tokens == 0 && !tokens.empty());
  Index& first = place.node == kNone ? place.root->first_child : nodes_[place.node].first_child;
  node = {.tokens = static_cast<std::int32_t>(tokens.size()),
          .position = place.depth * options_.block_tokens,
          .parent = place.node,
          .next = first,
          .root = place.root,
          .serial = ++serials_};
  if (first != kNone) nodes_[first].previous = index;
  first = index;
  if (place.node != kNone) ++nodes_[place.node].children;
  std::copy(tokens.begin(), tokens.end(), tokens_of(index).begin());
  pool_.hold(block);
  ++size_;
  touch(index, use);
  place = {.root = place.root, .node = index, .depth = place.depth + 1};
}

// Takes a leaf out of the tree. Its root stays, even empty.
void PrefixTree::unlink(Index index) {
  Node& node = nodes_[index];
  CHECK(node.tokens > 0 && node.children == 0);
  if (node.next != kNone) nodes_[node.next].previous = node.previous;
  if (node.previous != kNone) {
    nodes_[node.previous].next = node.next;
  } else if (node.parent != kNone) {
    nodes_[node.parent].first_child = node.next;
  } else {
    node.root->first_child = node.next;
  }
  if (node.parent != kNone) --nodes_[node.parent].children;
  node = {};
  --size_;
  pool_.let_go(static_cast<BlockId>(index));
}

void PrefixTree::choose_victims(std::int32_t count) {
  const auto later = [](const Candidate& a, const Candidate& b) {
    return std::tie(a.worth, a.last_use, a.node) > std::tie(b.worth, b.last_use, b.node);
  };
  heap_.clear();
  victims_.clear();
  for (Index index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    children_left_[index] = node.children;
    if (node.tokens > 0 && node.children == 0 && evictable(index))
      heap_.push_back({.worth = node.worth, .last_use = node.last_use, .node = index});
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
  while (!heap_.empty() && static_cast<std::int32_t>(victims_.size()) < count) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Index victim = heap_.back().node;
    heap_.pop_back();
    victims_.push_back(victim);
    const Index parent = nodes_[victim].parent;
    if (parent == kNone || --children_left_[parent] > 0 || !evictable(parent)) continue;
    heap_.push_back({.worth = nodes_[parent].worth, .last_use = nodes_[parent].last_use, .node = parent});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
}

void PrefixTree::evict_victims() {
  for (const Index victim : victims_) {
    least_worth_ = std::max(least_worth_, nodes_[victim].worth);
    unlink(victim);
    ++evicted_;
  }
}

void PrefixTree::erase_empty_roots() {
  std::erase_if(roots_, [](const auto& root) { return root.second.first_child == kNone; });
}

bool PrefixTree::make_room(std::int32_t count) {
  const std::int32_t missing = count - pool_.available();
  if (missing <= 0) return true;
  if (missing > size_) return false;
  choose_victims(missing);
  if (static_cast<std::int32_t>(victims_.size()) < missing) return false;
  evict_victims();
  erase_empty_roots();
  return true;
}

PrefixEntry PrefixTree::entry_of(Index leaf) const {
  const Node& last = nodes_[leaf];
  PrefixEntry entry{.id = last.serial,
                    .name_space = std::string(last.root->name),
                    .tokens = last.position + last.tokens,
                    .blocks = last.position / options_.block_tokens + 1,
                    .last_use = last.last_use};
  bool own = true;
  for (Index node = leaf; node != kNone; node = nodes_[node].parent) {
    own = own && nodes_[node].children <= 1;
    entry.own_blocks += own ? 1 : 0;
    entry.hits += nodes_[node].hits;
  }
  return entry;
}

std::vector<PrefixEntry> PrefixTree::entries() const {
  std::vector<PrefixEntry> result;
  for (Index index = 0; index < nodes_.size(); ++index) {
    if (nodes_[index].tokens > 0 && nodes_[index].children == 0) result.push_back(entry_of(index));
  }
  std::sort(result.begin(), result.end(), [](const PrefixEntry& a, const PrefixEntry& b) { return a.id < b.id; });
  return result;
}

// A leaf, and what of its way only it needs.
void PrefixTree::unlink_upwards(Index leaf) {
  for (Index node = leaf; node != kNone && nodes_[node].children == 0;) {
    const Index parent = nodes_[node].parent;
    unlink(node);
    node = parent;
  }
}

bool PrefixTree::remove(std::uint64_t id) {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                  [id](const Node& node) { return node.tokens > 0 && node.children == 0 && node.serial == id; });
  if (found == nodes_.end()) return false;
  unlink_upwards(static_cast<Index>(found - nodes_.begin()));
  erase_empty_roots();
  return true;
}

void PrefixTree::clear() {
  for (Index index = 0; index < nodes_.size(); ++index) {
    if (nodes_[index].tokens > 0) unlink_upwards(index);
  }
  CHECK(size_ == 0);
  roots_.clear();
}

}  // namespace linnet
