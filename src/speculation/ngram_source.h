// Drafts by looking up where the last few tokens stood before: for answers that copy from their prompt or from themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "speculation/draft_source.h"

namespace linnet {

// The longest of the last gram_max … gram_min tokens that occurred before decides; of its occurrences the latest that is still in
// the index. What followed there is proposed; where that runs into the present it goes on with itself, so that a repeated phrase
// is proposed at any length.
//
// Constant work for each token of the history and for each proposed one. The index is a table of fixed size in which newer
// entries replace older ones: a long history loses some early places, no correctness, since tokens are compared.
class NgramSource final : public DraftSource {
 public:
  static constexpr std::size_t kGramMax = 4;
  static constexpr std::size_t kGramMin = 2;
  static constexpr std::size_t kSlotsMax = std::size_t{1} << 18;  // 1 MiB

  // `tokens_max`: the longest that the history can become; it sizes the index.
  explicit NgramSource(std::size_t tokens_max);
  void observe(std::span<const TokenId> history) override;
  std::size_t propose(std::span<const TokenId> history, std::span<TokenId> into) override;
  std::size_t memory_bytes() const { return slots_.size() * sizeof(std::uint32_t); }

 private:
  std::uint32_t& slot_of(std::span<const TokenId> gram);
  // Where what followed the gram's last occurrence begins.
  std::optional<std::size_t> find(std::span<const TokenId> history, std::size_t gram_size);

  std::vector<std::uint32_t> slots_;  // the place after a gram; 0: free
  std::size_t observed_ = 0;          // grams that end before this place are in the index, each with a token after it
};

}  // namespace linnet
