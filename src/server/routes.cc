#include "server/routes.h"

#include <string>
#include <utility>

#include "api/errors.h"
#include "api/models.h"
#include "base/check.h"
#include "http/response_writer.h"
#include "server/answer_text.h"
#include "server/cache_routes.h"
#include "server/debug_routes.h"
#include "server/model_wait.h"
#include "server/response_routes.h"

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
  std::vector<ModelInfo> models;
  for (std::size_t index = 0; index < context.models->size(); ++index) models.push_back(context.models->info(index));
  std::vector<const ModelCard*> cards;
  for (const ModelInfo& model : models) cards.push_back(&model.card);
  std::string body = api::encode_model_list(cards);
  co_await send_json(writer, std::move(body));
}

Task<> show_model(const RouteContext& context, const http::Request& request, ResponseWriter& writer) {
  const Result<std::size_t> model = context.models->exact_model(request.parameter);
  if (!model.ok()) {
    Response response = error_response(model.error());
    co_await writer.send(std::move(response));
    co_return;
  }
  std::string body = api::encode_model(context.models->info(*model).card);
  co_await send_json(writer, std::move(body));
}

// The parameter of "/v1/models/{id}/load", ids having slashes of their own, up to `ending`; empty if it ends otherwise.
std::string_view before(std::string_view parameter, std::string_view ending) {
  return parameter.ends_with(ending) ? parameter.substr(0, parameter.size() - ending.size()) : std::string_view();
}

Task<> change_model(const RouteContext& context, const http::Request& request, ResponseWriter& writer) {
  const std::string_view load = before(request.parameter, "/load");
  const std::string_view unload = before(request.parameter, "/unload");
  Status status = Error{ErrorCode::kNotFound, "POST to /v1/models/ID/load or /v1/models/ID/unload", ""};
  if (!load.empty() || !unload.empty()) {
    const Result<std::size_t> model = context.models->exact_model(load.empty() ? unload : load);
    if (model.ok()) {
      status =
          co_await await_model_change(*context.loader, *model, load.empty() ? ModelChange::kUnload : ModelChange::kLoad, writer);
    } else {
      status = model.error();
    }
  }
  if (!status.ok()) {
    Response response = error_response(status.error());
    co_await writer.send(std::move(response));
    co_return;
  }
  const std::string body = load.empty() ? R"({"status":"unloaded"})" : R"({"status":"loaded"})";
  co_await send_json(writer, body);
}

}  // namespace

http::Router make_router(const RouteContext& context) {
  CHECK(context.models != nullptr && context.models->size() > 0 && context.loader != nullptr && context.ids != nullptr &&
        context.clock != nullptr);
  http::Router router;
  router.add("GET", context.prefix + "/health", [](const http::Request&, ResponseWriter& writer) { return health(writer); });
  for (const std::string& prefix : {context.prefix + "/v1", context.prefix}) {
    router.add("GET", prefix + "/models",
               [context](const http::Request&, ResponseWriter& writer) { return list_models(context, writer); });
    router.add("GET", prefix + "/models/{id}",
               [context](const http::Request& request, ResponseWriter& writer) { return show_model(context, request, writer); });
    router.add("POST", prefix + "/models/{id}", [context](const http::Request& request, ResponseWriter& writer) {
      return change_model(context, request, writer);
    });
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
      return answer_prompt(context, kCountTokens, request, writer);
    });
    router.add("POST", prefix + "/responses", [context](http::Request& request, ResponseWriter& writer) {
      return answer_text(context, kResponsesProtocol, request, writer);
    });
    add_response_routes(router, context, prefix);
    const std::pair<const char*, const PromptQuestion*> questions[] = {
        {"/tokenize", &kTokenize}, {"/detokenize", &kDetokenize}, {"/apply-template", &kApplyTemplate}};
    for (const auto& [path, question] : questions) {
      router.add("POST", prefix + path, [context, question = question](http::Request& request, ResponseWriter& writer) {
        return answer_prompt(context, *question, request, writer);
      });
    }
  }
  add_debug_routes(router, context);
  add_cache_routes(router, context);
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
