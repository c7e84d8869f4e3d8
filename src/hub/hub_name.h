// What `linnet get` is asked for on a hub.
#pragma once

#include <string>
#include <string_view>

#include "linnet/status.h"

namespace linnet {

struct HubName {
  std::string repository;         // "org/name"
  std::string revision = "main";  // a branch, a tag or a commit
  std::string quantization;       // "Q4_K_M"; empty: not named
  std::string file;               // a .gguf file's path in the repository; empty: not named

  bool operator==(const HubName&) const = default;
};

// org/name, with one of :QUANTIZATION and /path/file.gguf, then perhaps @REVISION. Error (kInvalidArgument): anything else; what
// is returned is safe as part of a path and, percent-encoded, of a URL.
Result<HubName> parse_hub_name(std::string_view text);

// One path below some folder, never above it: no empty, "." or ".." part, no backslash, no control byte, not absolute.
bool is_path_below(std::string_view path);

}  // namespace linnet
