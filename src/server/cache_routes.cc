#include "server/cache_routes.h"

#include <charconv>
#include <cstdio>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/event_signal.h"
#include "http/response_writer.h"
#include "server/answer_text.h"

namespace linnet {
namespace {

using Json = nlohmann::ordered_json;
using http::Response;
using http::ResponseWriter;
using http::Task;

// "model/12", where a model's name may have slashes, too.
struct EntryName {
  std::string model;
  std::uint64_t id = 0;
};

std::optional<EntryName> parse_name(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  EntryName name{.model = std::string(text.substr(0, slash))};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + slash + 1, end, name.id);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return name;
}

Json encode(const std::string& model, const CacheEntry& entry) {
  char name_space[17];
  std::snprintf(name_space, sizeof name_space, "%016llx", static_cast<unsigned long long>(entry.name_space));
  return {{"id", model + "/" + std::to_string(entry.id)},
          {"object", "cache.entry"},
          {"model", model},
          {"namespace", name_space},
          {"tier", "ram"},
          {"tokens", entry.tokens},
          {"bytes", entry.bytes},
          {"own_bytes", entry.own_bytes},
          {"hits", entry.hits},
          {"idle_seconds", entry.idle_s}};
}

// Waits for an engine's answer without holding a thread; nothing if the client left.
Task<std::optional<std::vector<CacheEntry>>> ask(TextEngine& engine, CacheQuestion question, ResponseWriter& writer) {
  http::EventSignal signal = writer.make_signal();
  const auto promise = std::make_shared<std::promise<std::vector<CacheEntry>>>();
  std::future<std::vector<CacheEntry>> found = promise->get_future();
  engine.ask_cache(question, [promise, notify = signal.notifier()](std::vector<CacheEntry> entries) {
    promise->set_value(std::move(entries));
    notify();
  });
  const http::Wake wake = co_await signal.wait();
  if (wake == http::Wake::kGone) co_return std::nullopt;
  co_return found.get();
}

Error unknown_entry() {
  return {ErrorCode::kNotFound, "no loaded model has a cache entry of this id; GET /v1/cache lists those there are", "id"};
}

Task<> answer(const RouteContext& context, http::Request& request, ResponseWriter& writer) {
  std::optional<EntryName> name;
  if (!request.parameter.empty()) {
    name = parse_name(request.parameter);
    if (!name) {
      Response response = error_response(unknown_entry());
      co_await writer.send(std::move(response));
      co_return;
    }
  }
  Json data = Json::array();
  for (const ModelLease& engine : context.models->loaded()) {
    const std::string model = engine->model().id;
    if (name && name->model != model) continue;
    CacheQuestion question{.id = std::nullopt, .forget = request.method == "DELETE"};
    if (name) question.id = name->id;
    const std::optional<std::vector<CacheEntry>> entries = co_await ask(*engine, question, writer);
    if (!entries) co_return;
    for (const CacheEntry& entry : *entries) data.push_back(encode(model, entry));
  }
  if (name && data.empty()) {
    Response response = error_response(unknown_entry());
    co_await writer.send(std::move(response));
    co_return;
  }
  const Json body = {{"object", "list"}, {"data", std::move(data)}};
  Response response{.content_type = "application/json", .body = body.dump()};
  co_await writer.send(std::move(response));
}

}  // namespace

void add_cache_routes(http::Router& router, const RouteContext& context) {
  if (!context.debug) return;
  for (const char* version : {"/v1", ""}) {
    for (const char* method : {"GET", "DELETE"}) {
      const auto handler = [context](http::Request& request, ResponseWriter& writer) { return answer(context, request, writer); };
      router.add(method, context.prefix + version + "/cache", handler);
      router.add(method, context.prefix + version + "/cache/{id}", handler);
    }
  }
}

}  // namespace linnet
