// Names and shapes out of untrusted files, fit for a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet {

// In quotation marks; bytes that are not printable ASCII as \xNN, at most 80 bytes of it.
inline std::string quote(std::string_view text) {
  constexpr std::size_t kBytesMax = 80;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, kBytesMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\') {
      result += c;
    } else {
      result += "\\x";
      result += kDigits[byte >> 4U];
      result += kDigits[byte & 0x0FU];
    }
  }
  return result + (text.size() > kBytesMax ? "...'" : "'");
}

// "[64, 96]".
inline std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return std::string("[").append(std::to_string(rows)).append(", ").append(std::to_string(cols)).append("]");
}

}  // namespace linnet
