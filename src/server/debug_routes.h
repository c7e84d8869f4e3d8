// What operators look at: metrics, the last steps, the way of one request.
#pragma once

#include "http/router.h"
#include "server/routes.h"

namespace linnet {

// GET /metrics, and where RouteContext::debug is true GET /debug/steps (text; JSON with ?format=json) and /debug/trace/{id} (of
// requests that were sent with the header x-linnet-trace-id). Behind RouteContext::prefix.
void add_debug_routes(http::Router& router, const RouteContext& context);

}  // namespace linnet
