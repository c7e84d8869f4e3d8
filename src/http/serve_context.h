// What all connections of a server read and none changes.
#pragma once

#include "base/clock.h"
#include "http/limits.h"
#include "http/router.h"
#include "http/server.h"

namespace linnet::http {

struct ServeContext {
  Limits limits;
  Router router;
  ErrorBody error_body;
  std::function<std::string()> make_id;
  const Clock* clock = nullptr;
};

}  // namespace linnet::http
