#include "server/response_routes.h"

#include <optional>
#include <string_view>
#include <utility>

#include "api/json_text.h"
#include "http/response_writer.h"
#include "server/answer_text.h"

namespace linnet {
namespace {

using http::Response;
using http::ResponseWriter;
using http::Task;

Error unknown_response() { return {ErrorCode::kNotFound, "there is no such response here", "response_id"}; }

// "id/input_items" -> id, if `part` is "/input_items".
std::optional<std::string> id_before(const std::string& parameter, std::string_view part) {
  if (!parameter.ends_with(part) || parameter.size() == part.size()) return std::nullopt;
  return parameter.substr(0, parameter.size() - part.size());
}

Result<StoredResponse> find(const RouteContext& context, const std::string& id, const std::string& owner) {
  if (context.responses == nullptr) return unknown_response();
  LINNET_ASSIGN(auto found, context.responses->get(id, owner));
  if (!found) return unknown_response();
  return *std::move(found);
}

Result<std::string> show(const RouteContext& context, const http::Request& request) {
  if (const auto id = id_before(request.parameter, "/input_items")) {
    LINNET_ASSIGN(const StoredResponse stored, find(context, *id, request.owner));
    return R"({"object":"list","data":)" + stored.items + R"(,"first_id":null,"last_id":null,"has_more":false})";
  }
  LINNET_ASSIGN(StoredResponse stored, find(context, request.parameter, request.owner));
  return std::move(stored.response);
}

Result<std::string> remove(const RouteContext& context, const http::Request& request) {
  if (context.responses == nullptr) return unknown_response();
  LINNET_ASSIGN(const bool removed, context.responses->remove(request.parameter, request.owner));
  if (!removed) return unknown_response();
  return "{\"id\":" + api::json_string(request.parameter) + R"(,"object":"response","deleted":true})";
}

// A response is stored when it is complete, and its request is cancelled by leaving: there is never one to cancel here.
Result<std::string> cancel(const RouteContext& context, const http::Request& request) {
  const auto id = id_before(request.parameter, "/cancel");
  if (!id) return Error{ErrorCode::kNotFound, "there is no such path; /cancel is what can be posted to a response", {}};
  LINNET_ASSIGN(const StoredResponse stored, find(context, *id, request.owner));
  return Error{ErrorCode::kInvalidArgument,
               "only responses made with background true can be cancelled, and this server makes none", "response_id"};
}

using Answer = Result<std::string> (*)(const RouteContext&, const http::Request&);

Task<> respond(const RouteContext& context, Answer answer, const http::Request& request, ResponseWriter& writer) {
  const Result<std::string> body = answer(context, request);
  Response response = body.ok() ? Response{.content_type = "application/json", .body = *body} : error_response(body.error());
  co_await writer.send(std::move(response));
}

}  // namespace

void add_response_routes(http::Router& router, const RouteContext& context, const std::string& prefix) {
  const auto add = [&](const char* method, Answer answer) {
    router.add(method, prefix + "/responses/{id}", [context, answer](const http::Request& request, ResponseWriter& writer) {
      return respond(context, answer, request, writer);
    });
  };
  add("GET", show);
  add("DELETE", remove);
  add("POST", cancel);
}

}  // namespace linnet
