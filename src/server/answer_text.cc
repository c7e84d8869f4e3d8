#include "server/answer_text.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "api/errors.h"
#include "base/log.h"

namespace linnet {
namespace {

using http::EventSignal;
using http::Header;

using http::Response;
using http::ResponseWriter;
using http::Task;
using http::Wake;

// JSON under its own names, and what HTTP libraries say of a body when nobody told them.
constexpr std::array<std::string_view, 5> kBodyTypes = {"", "application/json", "text/json", "text/plain",
                                                        "application/x-www-form-urlencoded"};

constexpr std::size_t kIgnoredShownMax = 20;

std::optional<Error> check_body_type(const http::Request& request) {
  const std::string type = request.media_type();
  if (std::find(kBodyTypes.begin(), kBodyTypes.end(), type) != kBodyTypes.end() || type.ends_with("+json")) return std::nullopt;
  return Error{ErrorCode::kUnsupported, "the body must be JSON: send Content-Type: application/json", "content-type"};
}

// Text of a client, made harmless for header lines and messages: ASCII, no control characters, short.
std::string printable(std::string_view text) {
  constexpr std::size_t kShownBytesMax = 64;
  std::string shown(text.substr(0, kShownBytesMax));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kShownBytesMax ? shown + "..." : shown;
}

std::string header_list(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < kIgnoredShownMax; ++i) {
    if (i > 0) list += ", ";
    list += printable(names[i]);
  }
  if (names.size() > kIgnoredShownMax) list += ", ...";
  return list;
}

Task<> send_error(ResponseWriter& writer, const Error& error) {
  Response response = error_response(error);
  co_await writer.send(std::move(response));
}

// An answer that did not come to its own end.
std::optional<Error> failure_of(const FinishEvent& finish) {
  if (finish.error) return finish.error;
  if (finish.reason == FinishReason::kCancelled) return Error{ErrorCode::kUnavailable, "the server cancelled this request", {}};
  return std::nullopt;
}

// One answer under way. Dropping it cancels the request.
class Answer {
 public:
  Answer(const RouteContext& context, const TextProtocol& protocol, const http::Request& request, ResponseWriter& writer,
         TextStream stream, const api::ParsedRequest& parsed, const ModelCard& card)
      : context_(context),
        protocol_(protocol),
        request_(request),
        writer_(writer),
        stream_(std::move(stream)),
        signal_(writer.make_signal()) {
    head_ = {.id = std::string(protocol.id_prefix) + context.ids->next(),
             .created = context.clock->unix_time().count(),
             .model = card.id};
    if (!parsed.ignored.empty()) headers_.push_back({"x-linnet-ignored", header_list(parsed.ignored)});
    stream_.on_ready(signal_.notifier());
  }

  Task<> send_whole() {
    std::string text;
    for (;;) {
      const std::optional<FinishEvent> finish = collect_ready(text);
      if (finish) {
        Response response = whole_reply(text, *finish);
        co_await writer_.send(std::move(response));
        co_return;
      }
      const Wake wake = co_await signal_.wait();
      if (wake == Wake::kGone) {
        log_departure();
        co_return;
      }
    }
  }

  // The first event decides on the status: an answer that fails before its first text is an HTTP error, not a broken stream.
  Task<> send_stream(bool include_usage) {
    api::OpenAiStream encoder = protocol_.stream(head_, include_usage);
    for (;;) {
      const std::optional<FinishEvent> finish = encode_ready(encoder);
      if (finish && failure_of(*finish) && !writer_.started() && encoder.empty()) {
        const Error error = *failure_of(*finish);
        co_await send_error(writer_, error);
        co_return;
      }
      if (finish) encode_end(encoder, *finish);
      const bool sent = co_await flush(encoder);
      if (finish && sent) co_return;
      Wake wake = Wake::kGone;
      if (sent) wake = co_await signal_.wait(context_.keep_alive);
      if (wake == Wake::kGone) {
        log_departure();
        co_return;
      }
      if (wake == Wake::kTimeout) encode_keep_alive(encoder);
    }
  }

 private:
  // Encodes what is there now; the final event, if it has come.
  std::optional<FinishEvent> encode_ready(api::OpenAiStream& encoder) {
    while (std::optional<TextEvent> event = stream_.try_next()) {
      const auto* delta = std::get_if<TextDelta>(&*event);
      if (delta == nullptr) return std::get<FinishEvent>(*event);
      begin_once(encoder);
      encoder.delta(delta->text);
    }
    return std::nullopt;
  }

  void encode_end(api::OpenAiStream& encoder, const FinishEvent& finish) {
    const std::optional<Error> failure = failure_of(finish);
    if (failure) {
      log_warning("request " + request_.id + " failed: " + failure->message);
      encoder.fail(*failure);
      return;
    }
    begin_once(encoder);
    encoder.finish(finish);
  }

  void encode_keep_alive(api::OpenAiStream& encoder) {
    begin_once(encoder);
    encoder.keep_alive();
  }

  void begin_once(api::OpenAiStream& encoder) {
    if (!std::exchange(begun_, true)) encoder.begin();
  }

  Task<bool> flush(api::OpenAiStream& encoder) {
    if (encoder.empty()) co_return true;
    if (!writer_.started()) co_await writer_.start_event_stream(std::move(headers_));
    std::string events = encoder.take();
    const bool sent = co_await writer_.write_event(std::move(events));
    co_return sent;
  }

  // Adds what is there now to `text`; the final event, if it has come.
  std::optional<FinishEvent> collect_ready(std::string& text) {
    while (std::optional<TextEvent> event = stream_.try_next()) {
      const auto* delta = std::get_if<TextDelta>(&*event);
      if (delta == nullptr) return std::get<FinishEvent>(*event);
      text += delta->text;
    }
    return std::nullopt;
  }

  Response whole_reply(const std::string& text, const FinishEvent& finish) {
    const std::optional<Error> failure = failure_of(finish);
    if (failure) return error_response(*failure);
    return {.content_type = "application/json", .body = protocol_.encode(head_, text, finish), .headers = std::move(headers_)};
  }

  void log_departure() { log_info("request " + request_.id + " is cancelled: its client left"); }

  const RouteContext& context_;
  const TextProtocol& protocol_;
  const http::Request& request_;
  ResponseWriter& writer_;
  TextStream stream_;
  EventSignal signal_;
  api::ReplyHead head_;
  std::vector<Header> headers_;
  bool begun_ = false;  // the encoder has the opening
};

}  // namespace

Result<TextEngine*> find_engine(const RouteContext& context, std::string_view model, ModelMatch match) {
  if (match == ModelMatch::kAnyIfAlone && context.engines.size() == 1) return context.engines.front();
  std::string known;
  for (TextEngine* engine : context.engines) {
    if (engine->model().id == model) return engine;
    known += (known.empty() ? "" : ", ") + engine->model().id;
  }
  return Error{ErrorCode::kNotFound, "there is no model \"" + printable(model) + "\" here; there is " + known, "model"};
}

Response error_response(const Error& error) {
  Response response{.status = api::http_status(error.code), .content_type = "application/json", .body = api::encode_error(error)};
  if (const std::optional<int> seconds = api::retry_after_s(error.code)) {
    response.headers.push_back({"retry-after", std::to_string(*seconds)});
  }
  return response;
}

Task<> answer_text(const RouteContext& context, const TextProtocol& protocol, const http::Request& request,
                   ResponseWriter& writer) {
  const std::optional<Error> wrong_type = check_body_type(request);
  if (wrong_type) {
    Response response = error_response(*wrong_type);
    response.status = 415;
    co_await writer.send(std::move(response));
    co_return;
  }
  Result<api::ParsedRequest> parsed = protocol.parse(request.body, {.strict = context.strict});
  if (!parsed.ok()) {
    co_await send_error(writer, parsed.error());
    co_return;
  }
  const Result<TextEngine*> engine = find_engine(context, parsed->model, ModelMatch::kAnyIfAlone);
  if (!engine.ok()) {
    co_await send_error(writer, engine.error());
    co_return;
  }
  Result<TextStream> stream = (*engine)->submit(std::move(parsed->request));
  if (!stream.ok()) {
    co_await send_error(writer, stream.error());
    co_return;
  }
  Answer answer(context, protocol, request, writer, *std::move(stream), *parsed, (*engine)->model());
  if (parsed->stream) {
    co_await answer.send_stream(parsed->include_usage);
  } else {
    co_await answer.send_whole();
  }
}

}  // namespace linnet
