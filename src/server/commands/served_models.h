// Which models `serve` serves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/pool.h"
#include "linnet/status.h"
#include "server/commands/model_flags.h"
#include "server/model_set.h"

namespace CLI {
class App;
}

namespace linnet {

struct ServedModelFlags {
  std::vector<std::string> more;    // beside ModelFlags::model, as typed
  std::vector<std::string> pinned;  // ids, or as typed
  std::int32_t idle_unload_s = 0;   // 0: never
};

// `flags` outlives `app`.
void add_served_model_flags(CLI::App& app, ServedModelFlags& flags);

ModelSetOptions model_set_options(const ModelFlags& model, const ServedModelFlags& flags);

// Each under its id, and as typed; all run on `pool`, which outlives them, or, if it is null, on what their backend brings. Their
// headers are read. Errors: those of load_options and outline_model; kInvalidArgument (two
// models of one id, a pin that names none).
Status add_models(const ModelFlags& model, const ServedModelFlags& flags, cpu::Pool* pool, ModelSet& models);

}  // namespace linnet
