// The flags by which `serve` says what chat templates are told by default.
#pragma once

#include <string>

#include "linnet/status.h"

namespace CLI {
class App;
}

namespace linnet {

struct TemplateFlags {
  std::string args;  // a JSON object
  std::string reasoning = "auto";
};

// `flags` outlives `app`.
void add_template_flags(CLI::App& app, TemplateFlags& flags);

// The template's variables as a JSON object; empty: none. Error: kInvalidArgument for args that are no object.
Result<std::string> template_args(const TemplateFlags& flags);

}  // namespace linnet
