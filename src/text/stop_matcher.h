// Finds the first of several stop strings in a text that arrives in pieces, and lets no part of one slip out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

struct StopMatch {
  std::string text;      // may be sent now
  bool matched = false;  // a stop string was completed: the text ends here
  std::string stop{};    // which

  bool operator==(const StopMatch&) const = default;
};

// One per sequence, one thread at a time. Aho-Corasick over bytes: O(1) amortised per byte, memory O(sum of stop lengths).
//   1. Of several stop strings the one that is complete first ends the text; of those complete at once, the one that begins
//   first.
//   2. Held back is exactly the longest suffix of the text so far that is a proper prefix of a stop string.
//   3. The result does not depend on how the text was cut into pieces.
class StopMatcher {
 public:
  // Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  // After a match: must not be called again.
  StopMatch push(std::string_view text);
  // The text is over without a match: what was held back.
  std::string finish();

 private:
  static constexpr std::int32_t kRoot = 0;
  static constexpr std::int32_t kNone = -1;
  struct Node {
    std::int32_t first_child = kNone;
    std::int32_t next_sibling = kNone;
    std::int32_t fail = kRoot;     // the longest proper suffix that is in the tree too
    std::int32_t depth = 0;        // bytes from the root
    std::int32_t match_bytes = 0;  // longest stop string that ends here; 0: none
    unsigned char byte = 0;
  };
  std::int32_t child(std::int32_t node, unsigned char byte) const;
  std::int32_t next_state(std::int32_t state, unsigned char byte) const;
  void add(std::string_view stop);
  void link();

  std::vector<Node> nodes_;
  std::int32_t state_ = kRoot;
  bool matched_ = false;
  std::string held_;  // nodes_[state_].depth bytes
};

}  // namespace linnet
