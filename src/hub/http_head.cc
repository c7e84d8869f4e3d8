#include "hub/http_head.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace linnet {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// `W/"abc"` -> `abc`
std::string unquoted(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

// What a stranger sends to be shown on a terminal.
std::string printable(std::string_view text) {
  constexpr std::size_t kShownMax = 300;
  std::string shown(text.substr(0, kShownMax));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 32 || c >= 127; }, '?');
  return shown;
}

// "bytes 100-199/200"
void read_content_range(std::string_view value, HttpHead& head) {
  constexpr std::string_view kUnit = "bytes ";
  if (!value.starts_with(kUnit)) return;
  value.remove_prefix(kUnit.size());
  const std::size_t dash = value.find('-');
  const std::size_t slash = value.find('/');
  if (dash == value.npos || slash == value.npos) return;
  head.range_first = number<std::uint64_t>(value.substr(0, dash));
  head.range_total = number<std::uint64_t>(value.substr(slash + 1));
}

// `"api";r=0;t=55`: t is the seconds until more may be asked.
std::optional<std::chrono::seconds> reset_of(std::string_view value) {
  const std::size_t at = value.find(";t=");
  if (at == value.npos) return std::nullopt;
  const std::string_view rest = value.substr(at + 3);
  const auto seconds = number<std::uint32_t>(rest.substr(0, rest.find_first_of(";,")));
  if (!seconds) return std::nullopt;
  return std::chrono::seconds(*seconds);
}

}  // namespace

void HttpHead::add_line(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with("HTTP/")) {
    const bool after_redirect = status >= 300 && status < 400;
    HttpHead next{.redirected = redirected || after_redirect};
    if (next.redirected) next.etag = etag;
    const std::size_t blank = line.find(' ');
    if (blank != line.npos) next.status = number<long>(line.substr(blank + 1, 3)).value_or(0);
    *this = next;
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "x-linked-etag" || (name == "etag" && !redirected && etag.empty() && status < 300)) etag = unquoted(value);
  if (name == "content-range") read_content_range(value, *this);
  if (name == "x-error-code") error_code = printable(value);
  if (name == "x-error-message") error_message = printable(value);
  if (name == "ratelimit" && !retry_after) retry_after = reset_of(value);
  if (name == "retry-after") {
    if (const auto seconds = number<std::uint32_t>(value)) retry_after = std::chrono::seconds(*seconds);
  }
}

}  // namespace linnet
