#include "server/debug_routes.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/response_writer.h"
#include "server/answer_text.h"
#include "server/debug_text.h"
#include "server/metrics.h"

namespace linnet {
namespace {

using http::Response;
using http::ResponseWriter;
using http::Task;

Response metrics(const RouteContext& context) {
  std::vector<ModelStats> models;
  for (const ModelLease& engine : context.models->loaded())
    models.push_back({.model = engine->model().id, .stats = engine->stats()});
  return {.content_type = kMetricsType, .body = encode_metrics(models)};
}

Response steps(const RouteContext& context, const http::Request& request) {
  const bool json = request.query == "format=json";
  std::string body;
  for (const ModelLease& engine : context.models->loaded()) {
    const std::vector<StepRecord> records = engine->recent_steps();
    if (json && !body.empty()) body += ',';
    body += json ? steps_as_json(engine->model().id, records) : steps_as_text(engine->model().id, records);
  }
  if (json) return {.content_type = "application/json", .body = "[" + body + "]"};
  return {.content_type = "text/plain; charset=utf-8", .body = std::move(body)};
}

Response trace(const RouteContext& context, const http::Request& request) {
  for (const ModelLease& engine : context.models->loaded()) {
    if (const std::optional<RequestTrace> found = engine->trace(request.parameter)) {
      return {.content_type = "application/json", .body = trace_as_json(*found)};
    }
  }
  return error_response({ErrorCode::kNotFound,
                         "no trace has this name: send a request with the header x-linnet-trace-id; the last " +
                             std::to_string(kTracesMax) + " of a model are kept",
                         "id"},
                        api::ErrorShape::kOpenAi);
}

Task<> send(ResponseWriter& writer, Response response) { co_await writer.send(std::move(response)); }

}  // namespace

void add_debug_routes(http::Router& router, const RouteContext& context) {
  router.add("GET", context.prefix + "/metrics",
             [context](const http::Request&, ResponseWriter& writer) { return send(writer, metrics(context)); });
  if (!context.debug) return;
  router.add("GET", context.prefix + "/debug/steps",
             [context](const http::Request& request, ResponseWriter& writer) { return send(writer, steps(context, request)); });
  router.add("GET", context.prefix + "/debug/trace/{id}",
             [context](const http::Request& request, ResponseWriter& writer) { return send(writer, trace(context, request)); });
}

}  // namespace linnet
