// The slow and obvious definition of lossy UTF-8, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet::test {

// Whether `bytes` is exactly one character.
inline bool is_character(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > 4) return false;
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  if (bytes.size() == 1) return at(0) < 0x80;
  const std::uint32_t lead_bits = bytes.size() == 2 ? 0xC0 : (bytes.size() == 3 ? 0xE0 : 0xF0);
  const std::uint32_t lead_mask = bytes.size() == 2 ? 0xE0 : (bytes.size() == 3 ? 0xF0 : 0xF8);
  if ((at(0) & lead_mask) != lead_bits) return false;
  std::uint32_t code = at(0) & ~lead_mask & 0xFF;
  for (std::size_t i = 1; i < bytes.size(); ++i) {
    if ((at(i) & 0xC0) != 0x80) return false;
    code = code << 6 | (at(i) & 0x3F);
  }
  const std::uint32_t least = bytes.size() == 2 ? 0x80 : (bytes.size() == 3 ? 0x800 : 0x10000);
  return code >= least && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

// Whether some bytes after `bytes` make it one character.
inline bool begins_character(std::string_view bytes) {
  for (std::size_t more = 1; bytes.size() + more <= 4; ++more) {
    for (const char fill : {'\x80', '\x9F', '\xA0', '\xBF'}) {
      if (!bytes.empty() && is_character(std::string(bytes) + std::string(more, fill))) return true;
    }
  }
  return false;
}

inline std::string lossy_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    std::size_t taken = 0;
    for (std::size_t n = 1; n <= 4 && n <= bytes.size() && taken == 0; ++n) {
      if (is_character(bytes.substr(0, n))) taken = n;
    }
    if (taken > 0) {
      text.append(bytes.substr(0, taken));
    } else {
      text.append("\xEF\xBF\xBD");
      taken = 1;
      while (taken < bytes.size() && begins_character(bytes.substr(0, taken + 1))) ++taken;
    }
    bytes.remove_prefix(taken);
  }
  return text;
}

// `bytes` up to the beginning of a character that is not complete at its end.
inline std::string_view without_incomplete_tail(std::string_view bytes) {
  for (std::size_t n = 3; n >= 1; --n) {
    if (n <= bytes.size() && begins_character(bytes.substr(bytes.size() - n))) return bytes.substr(0, bytes.size() - n);
  }
  return bytes;
}

}  // namespace linnet::test
