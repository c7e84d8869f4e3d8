#include "engine/row_grammar.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace linnet {
namespace {

constexpr std::size_t kWordBits = 32;

std::uint32_t bit_of(TokenId token) { return 1U << (index_of(token) % kWordBits); }

}  // namespace

RowGrammar::RowGrammar(const Grammar& beginning, std::int32_t vocabulary)
    : grammar_(beginning.fork()), mask_((static_cast<std::size_t>(vocabulary) + kWordBits - 1) / kWordBits) {}

Status RowGrammar::prepare(std::span<const TokenId> barred) {
  if (const Status computed = grammar_.mask(mask_); !computed.ok()) {
    Error error = computed.error();
    error.message = "the answer's grammar cannot be followed any further (" + error.message.substr(0, error.message.find('\n')) +
                    "); other requests are not affected";
    return error;
  }
  const auto may_come = [this](TokenId token) { return (mask_[index_of(token) / kWordBits] & bit_of(token)) != 0; };
  std::size_t allowed_and_barred = 0;
  for (const TokenId token : barred) allowed_and_barred += may_come(token) ? 1 : 0;
  if (allowed_and_barred == 0) return {};
  std::size_t allowed = 0;
  for (const std::uint32_t word : mask_) allowed += static_cast<std::size_t>(__builtin_popcount(word));
  if (allowed == allowed_and_barred) return {};
  for (const TokenId token : barred) mask_[index_of(token) / kWordBits] &= ~bit_of(token);
  return {};
}

}  // namespace linnet
