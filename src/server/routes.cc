#include "server/routes.h"

#include <string>
#include <utility>

#include "api/errors.h"
#include "api/models.h"
#include "base/check.h"
#include "http/response_writer.h"
#include "server/answer_text.h"
#include "server/debug_routes.h"

namespace linnet {
namespace {

using http::Response;
using http::ResponseWriter;
using http::Task;

bool is_anthropic(std::string_view path) { return path.starts_with("/v1/messages") || path.starts_with("/messages"); }

Task<> send_json(ResponseWriter& writer, std::string body) {
  Response response{.content_type = "application/json", .body = std::move(body)};
  co_await writer.send(std::move(response));
}

Task<> health(ResponseWriter& writer) {
  std::string body = R"({"status": "ok"})";
  co_await send_json(writer, std::move(body));
}

Task<> list_models(const RouteContext& context, ResponseWriter& writer) {
  std::vector<const ModelCard*> cards;
  for (const TextEngine* engine : context.engines) cards.push_back(&engine->model());
  std::string body = api::encode_model_list(cards);
  co_await send_json(writer, std::move(body));
}

Task<> show_model(const RouteContext& context, const http::Request& request, ResponseWriter& writer) {
  Result<TextEngine*> engine = find_engine(context, request.parameter, ModelMatch::kExact);
  if (!engine.ok()) {
    Response response = error_response(engine.error());
    co_await writer.send(std::move(response));
    co_return;
  }
  std::string body = api::encode_model((*engine)->model());
  co_await send_json(writer, std::move(body));
}

}  // namespace

http::Router make_router(const RouteContext& context) {
  CHECK(!context.engines.empty() && context.ids != nullptr && context.clock != nullptr);
  http::Router router;
  router.add("GET", context.prefix + "/health", [](const http::Request&, ResponseWriter& writer) { return health(writer); });
  for (const std::string& prefix : {context.prefix + "/v1", context.prefix}) {
    router.add("GET", prefix + "/models",
               [context](const http::Request&, ResponseWriter& writer) { return list_models(context, writer); });
    router.add("GET", prefix + "/models/{id}",
               [context](const http::Request& request, ResponseWriter& writer) { return show_model(context, request, writer); });
    router.add("POST", prefix + "/chat/completions", [context](http::Request& request, ResponseWriter& writer) {
      return answer_text(context, kChatProtocol, request, writer);
    });
    router.add("POST", prefix + "/completions", [context](http::Request& request, ResponseWriter& writer) {
      return answer_text(context, kCompletionProtocol, request, writer);
    });
    router.add("POST", prefix + "/messages", [context](http::Request& request, ResponseWriter& writer) {
      return answer_text(context, kAnthropicProtocol, request, writer);
    });
    router.add("POST", prefix + "/messages/count_tokens", [context](http::Request& request, ResponseWriter& writer) {
      return count_tokens(context, kAnthropicProtocol, request, writer);
    });
  }
  add_debug_routes(router, context);
  return router;
}

http::ServerOptions make_server_options(const RouteContext& context) {
  api::ReplyIds* ids = context.ids;
  const auto error_body = [prefix = context.prefix](std::string_view path, int status, std::string_view message) {
    const bool anthropic = path.starts_with(prefix) && is_anthropic(path.substr(prefix.size()));
    return api::encode_http_error(status, message, anthropic ? api::ErrorShape::kAnthropic : api::ErrorShape::kOpenAi);
  };
  return {.access = {.open_paths = {context.prefix + "/health"}},
          .error_body = error_body,
          .make_id = [ids] { return "req-" + ids->next(); },
          .clock = context.clock};
}

}  // namespace linnet
