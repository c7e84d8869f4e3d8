// The routes of stored responses: read, delete, cancel.
#pragma once

#include <string>

#include "http/router.h"
#include "server/routes.h"

namespace linnet {

// GET and DELETE {prefix}/responses/{id}, GET {prefix}/responses/{id}/input_items, POST {prefix}/responses/{id}/cancel.
void add_response_routes(http::Router& router, const RouteContext& context, const std::string& prefix);

}  // namespace linnet
