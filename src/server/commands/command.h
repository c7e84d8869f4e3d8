// The commands of the binary. Each registers itself with the command line and returns what runs it.
#pragma once

#include <functional>

#include "linnet/status.h"

namespace CLI {
class App;
}

namespace linnet {

// Adds the subcommand to `root` and arranges that parsing it sets `run` to what it does.
using RunCommand = std::function<Status()>;

void add_serve_command(CLI::App& root, RunCommand& run);
void add_generate_command(CLI::App& root, RunCommand& run);
void add_chat_command(CLI::App& root, RunCommand& run);
void add_bench_command(CLI::App& root, RunCommand& run);
void add_fit_command(CLI::App& root, RunCommand& run);
void add_get_command(CLI::App& root, RunCommand& run);
void add_inspect_command(CLI::App& root, RunCommand& run);
void add_ls_command(CLI::App& root, RunCommand& run);

}  // namespace linnet
