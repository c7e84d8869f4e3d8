#include "text/utf8.h"

#include <algorithm>

namespace linnet {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    if (missing_ == 0) {
      const auto* const first = bytes.begin();
      const auto* const end = std::find_if(first, bytes.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
      out.append(first, end);
      bytes.remove_prefix(static_cast<std::size_t>(end - first));
      if (bytes.empty()) return;
    }
    push_byte(static_cast<unsigned char>(bytes.front()), out);
    bytes.remove_prefix(1);
  }
}

void Utf8Stream::finish(std::string& out) {
  if (missing_ == 0) return;
  out.append(kReplacement);
  tail_.clear();
  missing_ = 0;
}

void Utf8Stream::push_byte(unsigned char byte, std::string& out) {
  if (missing_ > 0) {
    if (byte >= low_ && byte <= high_) {
      tail_.push_back(static_cast<char>(byte));
      low_ = 0x80;
      high_ = 0xBF;
      if (--missing_ == 0) {
        out.append(tail_);
        tail_.clear();
      }
      return;
    }
    finish(out);  // and the byte begins anew
  }
  begin(byte, out);
}

// Table 3-7 of the Unicode standard: which second byte may follow which first.
void Utf8Stream::begin(unsigned char lead, std::string& out) {
  if (lead < 0x80) {
    out.push_back(static_cast<char>(lead));
    return;
  }
  if (lead < 0xC2 || lead > 0xF4) {
    out.append(kReplacement);
    return;
  }
  missing_ = lead < 0xE0 ? 1 : (lead < 0xF0 ? 2 : 3);
  low_ = lead == 0xE0 ? 0xA0 : (lead == 0xF0 ? 0x90 : 0x80);
  high_ = lead == 0xED ? 0x9F : (lead == 0xF4 ? 0x8F : 0xBF);
  tail_.assign(1, static_cast<char>(lead));
}

}  // namespace linnet
