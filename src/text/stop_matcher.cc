#include "text/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace linnet {

StopMatcher::StopMatcher(std::vector<std::string> stops) : nodes_(1) {
  for (const std::string& stop : stops) {
    if (!stop.empty()) add(stop);
  }
  link();
}

std::int32_t StopMatcher::child(std::int32_t node, unsigned char byte) const {
  std::int32_t at = nodes_[static_cast<std::size_t>(node)].first_child;
  while (at != kNone && nodes_[static_cast<std::size_t>(at)].byte != byte) at = nodes_[static_cast<std::size_t>(at)].next_sibling;
  return at;
}

void StopMatcher::add(std::string_view stop) {
  std::int32_t node = kRoot;
  for (const char c : stop) {
    const auto byte = static_cast<unsigned char>(c);
    std::int32_t next = child(node, byte);
    if (next == kNone) {
      next = static_cast<std::int32_t>(nodes_.size());
      Node fresh;
      fresh.next_sibling = nodes_[static_cast<std::size_t>(node)].first_child;
      fresh.depth = nodes_[static_cast<std::size_t>(node)].depth + 1;
      fresh.byte = byte;
      nodes_.push_back(fresh);
      nodes_[static_cast<std::size_t>(node)].first_child = next;
    }
    node = next;
  }
  nodes_[static_cast<std::size_t>(node)].match_bytes = static_cast<std::int32_t>(stop.size());
}

// Breadth first: a node's fail link (its longest proper suffix in the tree) is shallower than itself.
void StopMatcher::link() {
  std::vector<std::int32_t> queue{kRoot};
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::int32_t parent = queue[i];
    for (std::int32_t at = nodes_[static_cast<std::size_t>(parent)].first_child; at != kNone;
         at = nodes_[static_cast<std::size_t>(at)].next_sibling) {
      Node& node = nodes_[static_cast<std::size_t>(at)];
      node.fail = parent == kRoot ? kRoot : next_state(nodes_[static_cast<std::size_t>(parent)].fail, node.byte);
      node.match_bytes = std::max(node.match_bytes, nodes_[static_cast<std::size_t>(node.fail)].match_bytes);
      queue.push_back(at);
    }
  }
}

std::int32_t StopMatcher::next_state(std::int32_t state, unsigned char byte) const {
  while (true) {
    const std::int32_t next = child(state, byte);
    if (next != kNone) return next;
    if (state == kRoot) return kRoot;
    state = nodes_[static_cast<std::size_t>(state)].fail;
  }
}

StopMatch StopMatcher::push(std::string_view text) {
  CHECK_MSG(!matched_, "push after a match");
  // What was held, then the new text; the state after a byte spans the last `depth` bytes up to it.
  StopMatch result;
  result.text = std::move(held_);
  const std::size_t held = result.text.size();
  result.text.append(text);
  for (std::size_t i = held; i < result.text.size(); ++i) {
    state_ = next_state(state_, static_cast<unsigned char>(result.text[i]));
    const auto match = static_cast<std::size_t>(nodes_[static_cast<std::size_t>(state_)].match_bytes);
    if (match > 0) {
      result.stop = result.text.substr(i + 1 - match, match);
      result.text.resize(i + 1 - match);
      result.matched = matched_ = true;
      held_.clear();
      return result;
    }
  }
  const auto depth = static_cast<std::size_t>(nodes_[static_cast<std::size_t>(state_)].depth);
  held_.assign(result.text, result.text.size() - depth, depth);
  result.text.resize(result.text.size() - depth);
  return result;
}

std::string StopMatcher::finish() {
  state_ = kRoot;
  return std::exchange(held_, {});
}

}  // namespace linnet
