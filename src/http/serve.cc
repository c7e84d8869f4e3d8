#include "http/serve.h"

#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/log.h"
#include "http/request_reader.h"
#include "http/response_writer.h"

namespace linnet::http {

// One call of a handler, and what has to be so after it.
class HandlerRun {
 public:
  HandlerRun(Connection& connection, const ServeContext& context, ReadRequest& read)
      : connection_(connection), context_(context), read_(read), writer_(connection, *context.workers, read.exchange) {}

  // True if the connection may take a further request.
  Task<bool> run() {
    read_.exchange.unix_time_s = context_.clock->unix_time().count();
    writer_.exchange_.unix_time_s = read_.exchange.unix_time_s;
    connection_.begin_watching();
    std::string failure;
    try {
      co_await (*read_.handler)(read_.request, writer_);
    } catch (const std::exception& exception) {
      failure = *exception.what() == '\0' ? "unnamed" : exception.what();
    }
    if (!failure.empty()) {
      co_await answer_failure(std::move(failure));
      connection_.end_watching();
      co_return false;
    }
    CHECK_MSG(writer_.started_ || connection_.gone(), "a handler returned without a response: " + read_.request.path);
    const bool finished = co_await writer_.finish();
    connection_.end_watching();
    co_return finished&& writer_.exchange_.keep_alive;
  }

 private:
  // A stream that has begun is cut instead, without its last chunk, so that nobody takes it for complete.
  Task<> answer_failure(std::string failure) {
    log_error("request " + read_.request.id + " to " + read_.request.path + " failed: " + failure);
    if (writer_.started_) co_return;
    writer_.exchange_.keep_alive = false;
    Response response{.status = 500, .content_type = "application/json"};
    response.body =
        context_.error_body(read_.request.path, 500, "the server failed to answer; its log has request " + read_.request.id);
    co_await writer_.send(std::move(response));
  }

  Connection& connection_;
  const ServeContext& context_;
  ReadRequest& read_;
  ResponseWriter writer_;
};

namespace {

Response refusal_response(const Refusal& refusal, const ServeContext& context) {
  Response response{.status = refusal.status, .headers = refusal.headers};
  if (refusal.status == 204) return response;
  response.content_type = "application/json";
  response.body = context.error_body(refusal.path, refusal.status, refusal.message);
  return response;
}

// True if the connection may take a further request.
Task<bool> answer_refusal(Connection& connection, const ServeContext& context, Refusal refusal) {
  const bool keep_alive = refusal.exchange.keep_alive && !connection.closing();
  Response response = refusal_response(refusal, context);
  ResponseWriter writer(connection, *context.workers, std::move(refusal.exchange));
  const bool sent = co_await writer.send(std::move(response));
  if (!sent) co_return false;
  if (!keep_alive) co_await connection.linger();
  co_return keep_alive;
}

Task<bool> serve_one(Connection& connection, const ServeContext& context) {
  ReadOutcome outcome = co_await read_request(connection, context);
  if (auto* refusal = std::get_if<Refusal>(&outcome)) {
    const bool more = co_await answer_refusal(connection, context, std::move(*refusal));
    co_return more;
  }
  auto* read = std::get_if<ReadRequest>(&outcome);
  if (read == nullptr) co_return false;
  HandlerRun run(connection, context, *read);
  const bool more = co_await run.run();
  co_return more;
}

}  // namespace

Task<> serve_connection(Connection& connection, const ServeContext& context) {
  for (;;) {
    const bool more = co_await serve_one(connection, context);
    if (!more) break;
  }
}

Task<> turn_away(Connection& connection, const ServeContext& context) {
  Refusal refusal{
      .status = 503,
  };
  refusal.message = "the server has its " + std::to_string(context.limits.connections_max) + " connections already; try again";
  refusal.exchange.request_id = context.make_id();
  refusal.exchange.unix_time_s = context.clock->unix_time().count();
  co_await answer_refusal(connection, context, std::move(refusal));
}

}  // namespace linnet::http
