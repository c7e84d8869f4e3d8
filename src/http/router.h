// Which handler answers which method and path.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"
#include "http/task.h"

namespace linnet::http {

class ResponseWriter;

// Answers one request: sends exactly one response. `request` and `writer` live until it returns. Exceptions are a 500 and a log
// line.
using Handler = std::function<Task<>(Request& request, ResponseWriter& writer)>;

struct RouteMatch {
  const Handler* handler = nullptr;  // null: no route, see `status`
  std::string parameter{};
  int status = 200;     // else 404, 405 or 400 (broken percent-encoding)
  std::string allow{};  // for 405: "GET, HEAD"
};

// Filled before the server starts, then only read: any thread may call match().
class Router {
 public:
  // `pattern`: a path, or one that ends in "/{name}", which takes the rest of the path, slashes included, at least one byte.
  // A path matches exact patterns first. GET routes answer HEAD too.
  void add(std::string method, std::string pattern, Handler handler);

  RouteMatch match(std::string_view method, std::string_view path) const;

 private:
  struct Route {
    std::string method;
    std::string path;  // for a pattern with a parameter: up to and with the last '/'
    bool parameter = false;
    Handler handler;
  };
  RouteMatch match_kind(std::string_view method, std::string_view path, bool parameter) const;
  std::vector<Route> routes_;
};

}  // namespace linnet::http
