// What is in the prompt caches of the loaded models.
#pragma once

#include "http/router.h"
#include "server/routes.h"

namespace linnet {

// GET and DELETE /v1/cache and /v1/cache/{model/id}, also without /v1, where RouteContext::debug is true: entries tell what
// others asked. Behind RouteContext::prefix.
void add_cache_routes(http::Router& router, const RouteContext& context);

}  // namespace linnet
