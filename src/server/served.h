// The whole front of a server, over a scripted engine, on a port of its own: what tests talk to.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/reply_ids.h"
#include "base/check.h"
#include "base/clock.h"
#include "http/raw_client.h"
#include "http/server.h"
#include "responses/response_store.h"
#include "server/routes.h"
#include "server/scripted_engine.h"

namespace linnet {

class Served {
 public:
  // `change` may set options of the routes before the server starts.
  explicit Served(const std::function<void(RouteContext&)>& change = {}) {
    auto responses = ResponseStore::open({}, clock_);
    CHECK(responses.ok());
    responses_ = *std::move(responses);
    auto engine = std::make_unique<ScriptedEngine>("tiny");
    engine_ = engine.get();
    models_.add_loaded(std::move(engine));
    RouteContext context{.models = &models_, .loader = &loader_, .ids = &ids_, .clock = &clock_, .responses = responses_.get()};
    if (change) change(context);
    http::ServerOptions options = make_server_options(context);
    options.listen.port = 0;
    options.access.check_host = false;
    Result<std::unique_ptr<http::Server>> server = http::Server::start(std::move(options), make_router(context));
    CHECK(server.ok());
    server_ = *std::move(server);
  }

  ScriptedEngine& engine() { return *engine_; }
  http::Server& server() { return *server_; }
  http::RawClient connect() const { return http::RawClient(server_->port()); }

  static std::string post(std::string_view path, std::string_view body) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + std::string(body);
  }

  // The whole response to one request on a connection of its own, with the head of a stream and its chunks as they are.
  std::string ask(const std::string& request) const {
    http::RawClient client = connect();
    client.send(request);
    std::string response = client.read_response();
    if (response.find("transfer-encoding: chunked") != std::string::npos) response += client.read_until("0\r\n\r\n");
    return response;
  }

 private:
  VirtualClock clock_;
  api::ReplyIds ids_{1};
  ModelSet models_{{.memory_budget = 100}, clock_};
  ModelLoader loader_{models_, std::nullopt};
  ScriptedEngine* engine_ = nullptr;  // in models_
  std::unique_ptr<ResponseStore> responses_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace linnet
