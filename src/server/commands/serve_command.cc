#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <semaphore>
#include <string>

#include "api/reply_ids.h"
#include "base/clock.h"
#include "base/log.h"
#include "http/server.h"
#include "hub/cache_folder.h"
#include "responses/response_store.h"
#include "runtime/load.h"
#include "server/commands/command.h"
#include "server/commands/interrupts.h"
#include "server/commands/model_flags.h"
#include "server/commands/served_models.h"
#include "server/commands/server_flags.h"
#include "server/commands/template_flags.h"
#include "server/model_loader.h"
#include "server/model_set.h"
#include "server/routes.h"

namespace linnet {
namespace {

struct ServeFlags {
  ModelFlags model;
  ServedModelFlags models;
  ServerFlags server;
  TemplateFlags chat_template;
  bool strict = false;
  std::string responses;  // a file, or off; empty: in the cache folder
};

Result<std::filesystem::path> response_file(const std::string& flag) {
  if (!flag.empty()) return std::filesystem::path(flag);
  LINNET_ASSIGN(const std::filesystem::path folder, cache_folder());
  return folder / "responses" / "responses.sqlite3";
}

Status serve(const ServeFlags& flags) {
  // The first signal drains; one that comes before there is anything to drain, or a second one, leaves at once.
  std::binary_semaphore stop{0};
  std::atomic<bool> serving = false;
  const Interrupts interrupts([&](int signal) {
    if (!serving.exchange(false)) std::_Exit(128 + signal);
    stop.release();
  });
  const SystemClock clock;
  const ModelSetOptions model_options = model_set_options(flags.model, flags.models);
  LINNET_ASSIGN(const LoadOptions load, load_options(flags.model));
  LINNET_ASSIGN(const std::unique_ptr<cpu::Pool> kernel_pool, make_kernel_pool(load));
  ModelSet models(model_options, clock);
  LINNET_RETURN_IF_ERROR(add_models(flags.model, flags.models, kernel_pool.get(), models));
  // A lone model is there before the first request, and its errors at once; of several each when it is asked for.
  if (models.size() == 1) LINNET_RETURN_IF_ERROR(models.load(0));
  ModelLoader loader(models, model_options.idle_time);
  std::random_device random;
  api::ReplyIds ids((std::uint64_t{random()} << 32) | random());
  std::unique_ptr<ResponseStore> responses;
  if (flags.responses != "off") {
    LINNET_ASSIGN(const std::filesystem::path file, response_file(flags.responses));
    LINNET_ASSIGN(responses, ResponseStore::open(file, clock));
  }
  LINNET_ASSIGN(const std::string args, template_args(flags.chat_template));
  const RouteContext context{.models = &models,
                             .loader = &loader,
                             .ids = &ids,
                             .clock = &clock,
                             .responses = responses.get(),
                             .strict = flags.strict,
                             .template_args = args,
                             .prefix = flags.server.prefix,
                             .debug = is_private(flags.server)};
  http::ServerOptions server_options = make_server_options(context);
  LINNET_RETURN_IF_ERROR(apply_server_flags(flags.server, server_options));
  LINNET_ASSIGN(const std::unique_ptr<http::Server> server, http::Server::start(std::move(server_options), make_router(context)));
  serving = true;
  log_info("serving at " + server->url() + flags.server.prefix);
  stop.acquire();
  log_info("stopping");
  server->stop();
  models.stop();
  return {};
}

}  // namespace

void add_serve_command(CLI::App& root, RunCommand& run) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* app = root.add_subcommand("serve", "Answer HTTP requests (OpenAI's protocol)");
  add_model_flags(*app, flags->model);
  add_served_model_flags(*app, flags->models);
  add_server_flags(*app, flags->server);
  add_template_flags(*app, flags->chat_template);
  app->add_option("--responses", flags->responses, "Where /v1/responses keeps its answers, a file; off: nowhere")
      ->envname("LINNET_RESPONSES");
  app->add_flag("--strict", flags->strict, "Unknown request fields are an error")->envname("LINNET_STRICT");
  app->callback([flags, &run] { run = [flags] { return serve(*flags); }; });
}

}  // namespace linnet
