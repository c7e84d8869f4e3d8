// Bytes that arrive in pieces, as valid UTF-8 text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace linnet {

// Keeps at most 3 bytes: the beginning of a character. What is no UTF-8 becomes U+FFFD, one for each longest part that could have
// begun a character (Unicode 16, section 3.9, "maximal subparts"), so the output doesn't depend on the pieces.
class Utf8Stream {
 public:
  // Appends to `out` all that is certain.
  void push(std::string_view bytes, std::string& out);
  // The bytes are over: an incomplete character is appended as U+FFFD.
  void finish(std::string& out);

 private:
  void push_byte(unsigned char byte, std::string& out);
  void begin(unsigned char lead, std::string& out);

  std::string tail_;
  std::uint8_t missing_ = 0;  // bytes that the character of tail_ still needs
  unsigned char low_ = 0x80;  // range of its next byte
  unsigned char high_ = 0xBF;
};

}  // namespace linnet
