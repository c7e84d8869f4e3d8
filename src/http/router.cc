#include "http/router.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace linnet::http {
namespace {

void add_allowed(std::string& allow, std::string_view method) {
  if (!allow.empty()) allow += ", ";
  allow += method;
  if (method == "GET") allow += ", HEAD";
}

}  // namespace

void Router::add(std::string method, std::string pattern, Handler handler) {
  CHECK(!pattern.empty() && pattern.front() == '/' && handler);
  const std::size_t brace = pattern.find('{');
  const bool parameter = brace != std::string::npos;
  if (parameter) {
    CHECK(pattern.back() == '}' && pattern[brace - 1] == '/');
    pattern.resize(brace);
  }
  routes_.push_back({std::move(method), std::move(pattern), parameter, std::move(handler)});
}

RouteMatch Router::match(std::string_view method, std::string_view path) const {
  RouteMatch exact = match_kind(method, path, /*parameter=*/false);
  if (exact.status != 404) return exact;
  return match_kind(method, path, /*parameter=*/true);
}

RouteMatch Router::match_kind(std::string_view method, std::string_view path, bool parameter) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  RouteMatch match{.status = 404};
  for (const Route& route : routes_) {
    if (route.parameter != parameter) continue;
    const bool here = parameter ? path.size() > route.path.size() && path.starts_with(route.path) : path == route.path;
    if (!here) continue;
    if (route.method != wanted) {
      match.status = 405;
      add_allowed(match.allow, route.method);
      continue;
    }
    match.handler = &route.handler;
    match.status = 200;
    match.allow.clear();
    if (parameter) {
      std::optional<std::string> decoded = percent_decoded(path.substr(route.path.size()));
      if (!decoded) return {.status = 400};
      match.parameter = *std::move(decoded);
    }
    return match;
  }
  return match;
}

}  // namespace linnet::http
