// A connection from its first byte to its last: read a request, let its handler answer, again.
#pragma once

#include "http/connection.h"
#include "http/serve_context.h"
#include "http/task.h"

namespace linnet::http {

// Returns when the connection may be closed.
Task<> serve_connection(Connection& connection, const ServeContext& context);

// Answers 503 without reading a request, for a connection beyond the limit.
Task<> turn_away(Connection& connection, const ServeContext& context);

}  // namespace linnet::http
