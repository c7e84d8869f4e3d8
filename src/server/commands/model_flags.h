// The flags by which every command that loads a model says which one and how.
#pragma once

#include <optional>
#include <string>

#include "linnet/options.h"
#include "linnet/status.h"

namespace CLI {
class App;
}

namespace linnet {

struct ModelFlags {
  std::string model;  // MODEL as typed: a path, a name of `linnet ls`, an unambiguous part of one, demo or demo-gemma
  LoadOptions options;
  std::string backend = "auto";
  std::string device = "auto";
  std::string kv = "f16";
  std::string draft = "auto";
  bool no_pin = false;
};

// Adds MODEL and the loading and sampling flags to `app`; `flags` outlives it.
void add_model_flags(CLI::App& app, ModelFlags& flags);

// The options with MODEL resolved to a path. Errors: kNotFound, kInvalidArgument (ambiguous), kUnsupported (a value whose feature
// does not exist).
Result<LoadOptions> load_options(const ModelFlags& flags);

}  // namespace linnet
