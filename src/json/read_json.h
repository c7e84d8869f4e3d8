// Bytes of a stranger to a JSON document, with every size bounded while parsing.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "linnet/status.h"

namespace linnet {

using Json = nlohmann::ordered_json;

struct JsonLimits {
  std::size_t depth_max = 64;             // arrays and objects inside each other
  std::size_t elements_max = 2'000'000;   // values of any kind in the whole document: a prompt of as many token ids
  std::size_t object_keys_max = 10'000;   // in one object
  std::string_view subject = "the body";  // what messages call it
};

// Linear in the size of `text`. Errors: kInvalidArgument with the byte where it stops being JSON or UTF-8 (the bytes are never
// repeated in it), for a key that appears twice, and for too much depth; kTooLarge for too many elements or keys.
Result<Json> read_json(std::string_view text, const JsonLimits& limits = {});

}  // namespace linnet
