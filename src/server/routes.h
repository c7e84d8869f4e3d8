// The HTTP routes of a server: request bytes to a text engine, its events back to the client.
#pragma once

#include <chrono>
#include <string>

#include "api/reply_ids.h"
#include "base/clock.h"
#include "http/router.h"
#include "http/server.h"
#include "responses/response_store.h"
#include "server/model_loader.h"
#include "server/model_set.h"

namespace linnet {

// Everything here outlives the HTTP server.
struct RouteContext {
  ModelSet* models = nullptr;     // at least one model
  ModelLoader* loader = nullptr;  // of these
  api::ReplyIds* ids = nullptr;
  const Clock* clock = nullptr;
  ResponseStore* responses = nullptr;  // null: none are kept
  bool strict = false;                 // unknown request fields are 400 instead of a header
  std::string template_args{};         // variables of chat templates that requests may override, a JSON object; empty: none
  std::string prefix{};                // before every path: "/llm"; empty: none
  bool debug = false;                  // /debug/...: only where nobody but the operator can ask
  // A stream without news for so long gets a comment, so that nobody on the way thinks it dead.
  std::chrono::milliseconds keep_alive{15'000};
};

// GET /health, /v1/models, /v1/models/{id}; POST /v1/models/{id}/load and .../unload, /v1/chat/completions, /v1/completions,
// /v1/messages, /v1/messages/count_tokens, /v1/responses, /tokenize, /detokenize, /apply-template; GET and DELETE
// /v1/responses/{id}; all but the first also without /v1. All behind RouteContext::prefix.
http::Router make_router(const RouteContext& context);

// Server options whose errors and ids are those of the API; /health is open to all; the rest as their defaults.
http::ServerOptions make_server_options(const RouteContext& context);

}  // namespace linnet
