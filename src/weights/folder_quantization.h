// What a folder's config.json says about quantized weights, in the words of mlx-lm.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "linnet/status.h"
#include "weights/config_json.h"

namespace linnet {

// Of a module, as the configuration names it.
struct NamedFormat {
  bool quantized = true;
  std::int32_t bits = 0;   // 2, 3, 4, 5, 6 or 8
  std::int32_t group = 0;  // 32, 64 or 128

  bool operator==(const NamedFormat&) const = default;
};

bool affine_bits_known(std::int64_t bits);
bool affine_group_known(std::int64_t group);

// The block "quantization" (or "quantization_config"): {"bits", "group_size", "mode"} for most modules, and modules by name, with
// such an object, true (as most) or false (not quantized). Immutable.
class FolderQuantization {
 public:
  // Errors: kUnsupported (a method or a mode that is not known, bits, group), kCorrupt.
  static Result<FolderQuantization> read(const ConfigJson& json);

  // Whether modules that are not named may be quantized.
  bool present() const { return most_.has_value(); }
  // Empty: not named; then a module is quantized if the file has scales for it, with the bits and the group of their shapes.
  std::optional<NamedFormat> named(std::string_view module) const;

 private:
  std::optional<NamedFormat> most_;
  std::map<std::string, NamedFormat, std::less<>> modules_;
};

}  // namespace linnet
