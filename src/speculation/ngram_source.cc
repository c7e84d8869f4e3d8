#include "speculation/ngram_source.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/random.h"

namespace linnet {
namespace {

constexpr std::size_t kSlotsMin = 256;
constexpr std::size_t kGramSizes = NgramSource::kGramMax - NgramSource::kGramMin + 1;

}  // namespace

NgramSource::NgramSource(std::size_t tokens_max)
    : slots_(std::bit_ceil(std::clamp(std::min(tokens_max, kSlotsMax) * kGramSizes, kSlotsMin, kSlotsMax))) {}

std::uint32_t& NgramSource::slot_of(std::span<const TokenId> gram) {
  std::uint64_t hash = gram.size();
  for (const TokenId token : gram) hash = mix64(hash ^ static_cast<std::uint32_t>(token));
  return slots_[hash & (slots_.size() - 1)];
}

void NgramSource::observe(std::span<const TokenId> history) {
  CHECK(history.size() + 1 >= observed_ && history.size() <= UINT32_MAX);
  for (; observed_ + 1 < history.size(); ++observed_) {
    const std::size_t next = observed_ + 1;  // the place after the gram that ends at observed_
    for (std::size_t size = kGramMin; size <= std::min(kGramMax, next); ++size)
      slot_of(history.subspan(next - size, size)) = static_cast<std::uint32_t>(next);
  }
}

std::optional<std::size_t> NgramSource::find(std::span<const TokenId> history, std::size_t gram_size) {
  const std::span<const TokenId> gram = history.last(gram_size);
  const std::size_t next = slot_of(gram);
  if (next < gram_size || !std::ranges::equal(history.subspan(next - gram_size, gram_size), gram)) return std::nullopt;
  return next;
}

std::size_t NgramSource::propose(std::span<const TokenId> history, std::span<TokenId> into) {
  observe(history);
  for (std::size_t size = std::min(kGramMax, history.size()); size >= kGramMin; --size) {
    const std::optional<std::size_t> next = find(history, size);
    if (!next) continue;
    for (std::size_t i = 0; i < into.size(); ++i) {
      const std::size_t at = *next + i;
      into[i] = at < history.size() ? history[at] : into[at - history.size()];
    }
    return into.size();
  }
  return 0;
}

}  // namespace linnet
