// Reads one request off a connection and finds its route; whatever is wrong with it becomes a refusal.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "http/connection.h"
#include "http/exchange.h"
#include "http/message.h"
#include "http/serve_context.h"
#include "http/task.h"

namespace linnet::http {

struct ReadRequest {
  Request request;
  Exchange exchange;
  const Handler* handler = nullptr;  // the context's
};

struct Refusal {
  int status = 400;
  std::string message{};
  std::string path{};  // asked for; empty if that was not read
  std::vector<Header> headers{};
  Exchange exchange{};  // keep_alive only if the request was read to its end
};

struct NothingRead {};  // the client left, or stayed idle for too long: there is nobody to answer

using ReadOutcome = std::variant<NothingRead, ReadRequest, Refusal>;

// The route is looked up, and the declared length checked, before the body is read.
Task<ReadOutcome> read_request(Connection& connection, const ServeContext& context);

}  // namespace linnet::http
