// Text of a client, made harmless for header lines and messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace linnet {

// Its first 64 bytes, what is not printable ASCII as '?', and "..." where there were more.
inline std::string printable(std::string_view text) {
  constexpr std::size_t kShownBytesMax = 64;
  std::string shown(text.substr(0, kShownBytesMax));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kShownBytesMax ? shown + "..." : shown;
}

}  // namespace linnet
