#include "http/request_reader.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/system_error.hpp>
#include <new>
#include <string_view>
#include <utility>

namespace linnet::http {
namespace {

namespace beast_http = boost::beast::http;
using Parser = beast_http::request_parser<beast_http::string_body>;
using boost::system::error_code;

constexpr std::size_t kRequestIdBytesMax = 128;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

bool equals_ignoring_case(std::string_view text, std::string_view lower) { return to_lower_ascii(text) == lower; }

std::string bytes(std::size_t count) { return std::to_string(count) + " bytes"; }

Refusal refusal_for(const error_code& error, const Limits& limits) {
  if (error == beast_http::error::header_limit) {
    return {.status = 431, .message = "the request's header is larger than " + bytes(limits.header_bytes_max)};
  }
  if (error == beast_http::error::body_limit) {
    return {.status = 413, .message = "the request's body is larger than " + bytes(limits.body_bytes_max)};
  }
  if (error == beast_http::error::bad_version) return {.status = 505, .message = "only HTTP/1.0 and HTTP/1.1 are served"};
  return {.status = 400, .message = "the request is not valid HTTP: " + error.message()};
}

Refusal bodies_full(const Limits& limits) {
  return {.status = 503,
          .message = "the requests under way hold " + bytes(limits.bodies_bytes_max) + " of bodies already; try again",
          .headers = {{"retry-after", "1"}}};
}

// Ids come back in a header and in log lines: nothing but letters, digits and a few signs.
bool is_safe_id(std::string_view id) {
  const auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.:+/=").find(c) != std::string_view::npos;
  };
  return !id.empty() && id.size() <= kRequestIdBytesMax && std::all_of(id.begin(), id.end(), safe);
}

// Short, and ASCII: paths may hold any bytes.
std::string printable(std::string text) {
  constexpr std::size_t kShownBytesMax = 200;
  if (text.size() > kShownBytesMax) text = text.substr(0, kShownBytesMax) + "...";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// "http://host/path" as a proxy would send it -> "/path".
std::string_view origin_form(std::string_view target) {
  const std::size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const std::size_t slash = target.find('/', scheme + 3);
  return slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
}

Request to_request(const Parser::value_type& message) {
  Request request;
  request.method = view(message.method_string());
  const std::string_view target = origin_form(view(message.target()));
  const std::size_t mark = std::min(target.find('?'), target.size());
  request.path = target.substr(0, mark);
  if (mark < target.size()) request.query = target.substr(mark + 1);
  for (const auto& field : message) {
    request.headers.push_back({to_lower_ascii(view(field.name_string())), std::string(view(field.value()))});
  }
  return request;
}

// What HTTP itself forbids in a header that could be parsed.
std::optional<Refusal> check_header(const Parser& parser, const Request& request) {
  const auto count = [&](std::string_view name) {
    return std::count_if(request.headers.begin(), request.headers.end(),
                         [&](const Header& header) { return header.name == name; });
  };
  const std::string_view transfer = request.header("transfer-encoding");
  if (count("host") > 1 || (count("host") == 0 && parser.get().version() >= 11)) {
    return Refusal{.status = 400, .message = "the request needs exactly one Host header"};
  }
  if (!transfer.empty() && (!equals_ignoring_case(transfer, "chunked") || !parser.chunked() || parser.get().version() < 11)) {
    return Refusal{.status = 400, .message = "the only Transfer-Encoding that is read is chunked, in HTTP/1.1"};
  }
  const std::string_view encoding = request.header("content-encoding");
  if (!encoding.empty() && !equals_ignoring_case(encoding, "identity")) {
    return Refusal{.status = 415, .message = "compressed bodies are not read: send it without Content-Encoding"};
  }
  const std::string_view expect = request.header("expect");
  if (!expect.empty() && !equals_ignoring_case(expect, "100-continue")) {
    return Refusal{.status = 417, .message = "the only expectation that is met is 100-continue"};
  }
  return std::nullopt;
}

// One request's way through the parser.
class RequestReader {
 public:
  RequestReader(Connection& connection, const ServeContext& context) : connection_(connection), context_(context) {
    parser_.header_limit(static_cast<std::uint32_t>(context.limits.header_bytes_max));
    parser_.body_limit(context.limits.body_bytes_max);
  }

  Task<ReadOutcome> read();

 private:
  enum class Progress { kDone, kLeft, kRefused };

  Task<bool> wait_for_first_byte();
  Task<Progress> parse(const char* part);  // up to the end of the header, or of the body once the parser is eager
  std::optional<Refusal> accept_header();
  Task<> ask_for_body();
  Refusal refuse(Refusal refusal);

  Connection& connection_;
  const ServeContext& context_;
  Parser parser_;
  Refusal refusal_;
  ReadRequest result_;
};

Task<bool> RequestReader::wait_for_first_byte() {
  connection_.wakeup().set_deadline(context_.limits.idle_timeout);
  for (;;) {
    // Some clients send an empty line behind a body.
    auto& buffer = connection_.buffer();
    const std::string_view received(static_cast<const char*>(buffer.data().data()), buffer.size());
    buffer.consume(std::min(received.find_first_not_of("\r\n"), received.size()));
    if (buffer.size() > 0) co_return true;
    const Connection::Fill filled = co_await connection_.fill_idle();
    if (filled != Connection::Fill::kBytes) co_return false;
  }
}

Task<RequestReader::Progress> RequestReader::parse(const char* part) {
  auto& buffer = connection_.buffer();
  for (;;) {
    if (buffer.size() > 0) {
      error_code error;
      buffer.consume(parser_.put(buffer.data(), error));
      if (error && error != beast_http::error::need_more) {
        refusal_ = refusal_for(error, context_.limits);
        co_return Progress::kRefused;
      }
      if (!result_.request.body_lease.grow_to(parser_.get().body().size())) {
        refusal_ = bodies_full(context_.limits);
        co_return Progress::kRefused;
      }
      if (parser_.is_done() || (!parser_.eager() && parser_.is_header_done())) co_return Progress::kDone;
      if (!error && buffer.size() > 0) continue;
    }
    const Connection::Fill filled = co_await connection_.fill();
    if (filled == Connection::Fill::kEnd) co_return Progress::kLeft;
    if (filled == Connection::Fill::kTimeout) {
      refusal_ = {.status = 408, .message = std::string("the request's ") + part + " did not arrive in time"};
      co_return Progress::kRefused;
    }
  }
}

// Fills in result_ but for the body.
std::optional<Refusal> RequestReader::accept_header() {
  result_.request = to_request(parser_.get());
  Request& request = result_.request;
  request.body_lease = BodyLease(*context_.bodies);
  result_.exchange.http_1_1 = parser_.get().version() >= 11;
  result_.exchange.head_only = request.method == "HEAD";
  result_.exchange.keep_alive = parser_.is_done() && parser_.keep_alive();
  if (is_safe_id(request.header("x-request-id"))) result_.exchange.request_id = request.header("x-request-id");
  if (auto refusal = check_header(parser_, request)) {
    result_.exchange.keep_alive = false;
    return refusal;
  }
  result_.exchange.headers = context_.access.cors_headers(request);
  if (auto denial = context_.access.check(request)) {
    return Refusal{.status = denial->status, .message = std::move(denial->message), .headers = std::move(denial->headers)};
  }
  request.owner = context_.access.owner(request);
  if (Access::is_preflight(request)) return Refusal{.status = 204, .headers = Access::preflight_headers(request)};
  RouteMatch match = context_.router.match(request.method, request.path);
  request.parameter = std::move(match.parameter);
  result_.handler = match.handler;
  switch (match.status) {
    case 200:
      return std::nullopt;
    case 404:
      return Refusal{.status = 404, .message = "there is no " + printable(request.method + " " + request.path)};
    case 405:
      return Refusal{.status = 405, .message = "this path takes " + match.allow, .headers = {{"allow", match.allow}}};
    default:
      return Refusal{.status = 400, .message = "the path's percent-encoding is broken"};
  }
}

Task<> RequestReader::ask_for_body() {
  if (connection_.buffer().size() > 0 || result_.request.header("expect").empty() || !result_.exchange.http_1_1) co_return;
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  co_await connection_.write(boost::asio::buffer(kContinue));
}

Refusal RequestReader::refuse(Refusal refusal) {
  refusal.exchange = std::move(result_.exchange);
  refusal.path = std::move(result_.request.path);
  refusal.exchange.unix_time_s = context_.clock->unix_time().count();
  if (refusal.exchange.request_id.empty()) refusal.exchange.request_id = context_.make_id();
  return refusal;
}

Task<ReadOutcome> RequestReader::read() {
  const bool begun = co_await wait_for_first_byte();
  if (!begun) co_return NothingRead{};
  connection_.wakeup().set_deadline(context_.limits.header_timeout);
  const Progress header = co_await parse("header");
  if (header == Progress::kLeft) co_return NothingRead{};
  if (header == Progress::kRefused) co_return refuse(std::move(refusal_));
  if (auto refusal = accept_header()) co_return refuse(*std::move(refusal));
  if (!parser_.is_done()) {
    co_await ask_for_body();
    connection_.wakeup().set_deadline(context_.limits.body_timeout);
    parser_.eager(true);
    const Progress body = co_await parse("body");
    if (body == Progress::kLeft) co_return NothingRead{};
    if (body == Progress::kRefused) co_return refuse(std::move(refusal_));
  }
  result_.request.body = std::move(parser_.get().body());
  result_.exchange.keep_alive = parser_.keep_alive();
  if (result_.exchange.request_id.empty()) result_.exchange.request_id = context_.make_id();
  result_.request.id = result_.exchange.request_id;
  co_return std::move(result_);
}

}  // namespace

Task<ReadOutcome> read_request(Connection& connection, const ServeContext& context) {
  RequestReader reader(connection, context);
  ReadOutcome outcome = co_await reader.read();
  co_return outcome;
}

}  // namespace linnet::http
