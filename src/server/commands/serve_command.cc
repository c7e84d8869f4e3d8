#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <semaphore>
#include <string>

#include "api/reply_ids.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/server.h"
#include "linnet/text_engine.h"
#include "server/commands/command.h"
#include "server/commands/interrupts.h"
#include "server/commands/model_flags.h"
#include "server/commands/server_flags.h"
#include "server/routes.h"

namespace linnet {
namespace {

struct ServeFlags {
  ModelFlags model;
  ServerFlags server;
  bool strict = false;
};

std::string describe(const ModelCard& card) {
  return card.id + " (" + card.architecture + "), " + card.backend + " backend, " + card.kernels + " kernels, " +
         std::to_string(card.threads) + " threads, context " + std::to_string(card.context);
}

Status serve(const ServeFlags& flags) {
  LINNET_ASSIGN(const LoadOptions options, load_options(flags.model));
  // The first signal drains; one that comes before there is anything to drain, or a second one, leaves at once.
  std::binary_semaphore stop{0};
  std::atomic<bool> serving = false;
  const Interrupts interrupts([&](int signal) {
    if (!serving.exchange(false)) std::_Exit(128 + signal);
    stop.release();
  });
  const SystemClock clock;
  LINNET_ASSIGN(const std::unique_ptr<TextEngine> engine, TextEngine::load(options));
  std::random_device random;
  api::ReplyIds ids((std::uint64_t{random()} << 32) | random());
  const RouteContext context{.engines = {engine.get()},
                             .ids = &ids,
                             .clock = &clock,
                             .strict = flags.strict,
                             .prefix = flags.server.prefix,
                             .debug = is_private(flags.server)};
  http::ServerOptions server_options = make_server_options(context);
  LINNET_RETURN_IF_ERROR(apply_server_flags(flags.server, server_options));
  LINNET_ASSIGN(const std::unique_ptr<http::Server> server, http::Server::start(std::move(server_options), make_router(context)));
  log_info(describe(engine->model()));
  serving = true;
  log_info("serving at " + server->url() + flags.server.prefix);
  stop.acquire();
  log_info("stopping");
  server->stop();
  engine->stop();
  return {};
}

}  // namespace

void add_serve_command(CLI::App& root, RunCommand& run) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* app = root.add_subcommand("serve", "Answer HTTP requests (OpenAI's protocol)");
  add_model_flags(*app, flags->model);
  add_server_flags(*app, flags->server);
  app->add_flag("--strict", flags->strict, "Unknown request fields are an error")->envname("LINNET_STRICT");
  app->callback([flags, &run] { run = [flags] { return serve(*flags); }; });
}

}  // namespace linnet
