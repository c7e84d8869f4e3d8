// What all connections of a server read and none changes.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <optional>

#include "base/clock.h"
#include "http/access.h"
#include "http/body_budget.h"
#include "http/limits.h"
#include "http/router.h"
#include "http/server.h"
#include "http/transport.h"

namespace linnet::http {

struct ServeContext {
  Limits limits;
  Router router;
  ErrorBody error_body;
  std::function<std::string()> make_id;
  const Clock* clock = nullptr;
  Access access;
  std::optional<TlsContext> tls;
  BodyBudget* bodies = nullptr;                 // the one thing that changes: an atomic count
  boost::asio::thread_pool* workers = nullptr;  // for what would hold up an IO thread
};

}  // namespace linnet::http
