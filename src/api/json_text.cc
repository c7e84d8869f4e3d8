#include "api/json_text.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <system_error>

#include "base/check.h"

namespace linnet::api {
namespace {

bool needs_escape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

void append_escape(std::string& out, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

}  // namespace

void append_json_text(std::string& out, std::string_view utf8) {
  std::size_t plain = 0;  // begin of the run that is copied as it is
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    if (!needs_escape(utf8[i])) continue;
    out.append(utf8, plain, i - plain);
    append_escape(out, utf8[i]);
    plain = i + 1;
  }
  out.append(utf8, plain, utf8.size() - plain);
}

void append_json_integer(std::string& out, std::int64_t value) {
  char digits[24];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), value);
  CHECK(error == std::errc());
  out.append(digits, end);
}

void append_json_number(std::string& out, float value) {
  constexpr float kInstead = 9999;
  char digits[32];
  const float finite = std::isfinite(value) ? value : std::copysign(kInstead, value);
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), finite);
  CHECK(error == std::errc());
  out.append(digits, end);
}

std::string json_string(std::string_view utf8) {
  std::string text = "\"";
  append_json_text(text, utf8);
  return text += '"';
}

}  // namespace linnet::api
