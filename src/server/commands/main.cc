// The linnet binary: parse the command line, run one command, tell its error.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/log.h"
#include "linnet/version.h"
#include "server/commands/command.h"

int main(int argc, char** argv) {
  CLI::App app{"Linnet: an LLM inference server whose answers do not depend on company."};
  app.set_version_flag("--version,-v", linnet::kVersion);
  app.set_config("--config", "", "Read flags from a TOML file: one [command] section each");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* failed, const CLI::Error& error) {
    return std::string("error: ") + error.what() + "\nSee `" + failed->get_name() + " --help`.\n";
  });

  std::string log_level = "info";
  app.add_option("--log-level", log_level, "debug, info, warning, error or off")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->envname("LINNET_LOG_LEVEL");

  linnet::RunCommand run;
  linnet::add_serve_command(app, run);
  linnet::add_generate_command(app, run);
  linnet::add_chat_command(app, run);
  linnet::add_bench_command(app, run);
  linnet::add_fit_command(app, run);
  linnet::add_get_command(app, run);
  linnet::add_inspect_command(app, run);
  linnet::add_ls_command(app, run);
  app.fallthrough();
  CLI11_PARSE(app, argc, argv);

  linnet::set_log_level(*linnet::parse_log_level(log_level));
  if (const linnet::Status status = run(); !status.ok()) {
    std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
