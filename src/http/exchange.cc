#include "http/exchange.h"

#include <algorithm>
#include <string_view>

#include "base/check.h"

namespace linnet::http {
namespace {

void append_header(std::string& head, std::string_view name, std::string_view value) {
  CHECK_MSG(std::none_of(value.begin(), value.end(), [](char c) { return c == '\r' || c == '\n' || c == '\0'; }), name);
  head.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string response_head(const Exchange& exchange, const Response& response, const BodyFraming& framing) {
  std::string head = exchange.http_1_1 ? "HTTP/1.1 " : "HTTP/1.0 ";
  head.append(std::to_string(response.status)).append(" ").append(reason_phrase(response.status)).append("\r\n");
  append_header(head, "date", http_date(exchange.unix_time_s));
  if (!response.content_type.empty()) append_header(head, "content-type", response.content_type);
  if (framing.content_length) append_header(head, "content-length", std::to_string(*framing.content_length));
  if (framing.chunked) append_header(head, "transfer-encoding", "chunked");
  append_header(head, "connection", exchange.keep_alive ? "keep-alive" : "close");
  append_header(head, "x-request-id", exchange.request_id);
  for (const Header& header : exchange.headers) append_header(head, header.name, header.value);
  for (const Header& header : response.headers) append_header(head, header.name, header.value);
  return head.append("\r\n");
}

}  // namespace linnet::http
