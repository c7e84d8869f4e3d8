#include "speculation/acceptance.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace linnet {
namespace {

// The token joins the answer: emitted, or the end of it.
Status take(TokenId token, const AcceptanceLimits& limits, const AcceptanceWalk& walk, AcceptanceResult& result) {
  if (std::find(limits.ends.begin(), limits.ends.end(), token) != limits.ends.end()) {
    result.saw_eos = true;
    result.done = true;
    return {};
  }
  result.tokens[result.emitted_count++] = token;
  if (walk.advance) {
    LINNET_ASSIGN(result.grammar_done, walk.advance(token));
  }
  result.done = result.grammar_done || result.emitted_count == limits.tokens_left;
  return {};
}

}  // namespace

Result<AcceptanceResult> accept_drafts(std::span<const TokenId> drafts, const AcceptanceLimits& limits,
                                       const AcceptanceWalk& walk) {
  CHECK(limits.tokens_left >= 1 && std::cmp_less_equal(drafts.size(), kDraftsMax));
  AcceptanceResult result;
  while (!result.done && !result.correction) {
    LINNET_ASSIGN(const TokenId drawn, walk.draw(result.position));
    const bool stands = result.position < drafts.size() && drawn == drafts[result.position];
    ++result.position;
    if (stands) {
      ++result.accepted;
    } else {
      result.correction = drawn;
    }
    LINNET_RETURN_IF_ERROR(take(drawn, limits, walk, result));
  }
  return result;
}

}  // namespace linnet
