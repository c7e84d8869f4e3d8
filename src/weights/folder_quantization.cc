#include "weights/folder_quantization.h"

#include <algorithm>
#include <array>

#include "weights/quote.h"

namespace linnet {
namespace {

constexpr std::array<std::int64_t, 6> kBits = {2, 3, 4, 5, 6, 8};
constexpr std::array<std::int64_t, 3> kGroups = {32, 64, 128};

// `place`: "quantization" or a module's name in it.
Result<NamedFormat> read_format(const ConfigJson& block, const std::string& place) {
  const auto named = [&](const Error& error) {
    return Error{error.code, error.message + " (in " + quote(place) + ")", error.param};
  };
  const Result<std::optional<std::string>> mode = block.string("mode");
  if (!mode.ok()) return named(mode.error());
  if (mode->value_or("affine") != "affine") {
    return block.error(ErrorCode::kUnsupported,
                       quote(place) + " has the quantization mode " + quote(**mode) + "; known is affine");
  }
  const Result<std::int64_t> bits = block.require_int("bits", 1, 64);
  if (!bits.ok()) return named(bits.error());
  const Result<std::int64_t> group = block.require_int("group_size", 1, 1 << 20);
  if (!group.ok()) return named(group.error());
  if (!affine_bits_known(*bits)) {
    return block.error(ErrorCode::kUnsupported,
                       quote(place) + " has " + std::to_string(*bits) + " bits; known are 2, 3, 4, 5, 6 and 8");
  }
  if (!affine_group_known(*group)) {
    return block.error(ErrorCode::kUnsupported,
                       quote(place) + " has the group_size " + std::to_string(*group) + "; known are 32, 64 and 128");
  }
  return NamedFormat{.quantized = true, .bits = static_cast<std::int32_t>(*bits), .group = static_cast<std::int32_t>(*group)};
}

}  // namespace

bool affine_bits_known(std::int64_t bits) { return std::find(kBits.begin(), kBits.end(), bits) != kBits.end(); }
bool affine_group_known(std::int64_t group) { return std::find(kGroups.begin(), kGroups.end(), group) != kGroups.end(); }

Result<FolderQuantization> FolderQuantization::read(const ConfigJson& json) {
  FolderQuantization quantization;
  std::string key = "quantization";
  const Json* found = json.find(key);
  if (found == nullptr) found = json.find(key = "quantization_config");
  if (found == nullptr) return quantization;
  if (!found->is_object()) return json.value_error(ErrorCode::kCorrupt, key, *found, "an object is wanted");
  const ConfigJson block = json.within(*found);
  LINNET_ASSIGN(const std::optional<std::string> method, block.string("quant_method"));
  if (method) {
    return json.error(ErrorCode::kUnsupported,
                      quote(key) + " has the quantization method " + quote(*method) + "; known is mlx-lm's affine");
  }
  LINNET_ASSIGN(quantization.most_, read_format(block, key));
  for (const auto& [name, value] : found->items()) {
    if (value.is_boolean()) {
      NamedFormat format = *quantization.most_;
      format.quantized = value.get<bool>();
      quantization.modules_.emplace(name, format);
    } else if (value.is_object()) {
      LINNET_ASSIGN(const NamedFormat format, read_format(json.within(value), name));
      quantization.modules_.emplace(name, format);
    }
  }
  return quantization;
}

std::optional<NamedFormat> FolderQuantization::named(std::string_view module) const {
  const auto found = modules_.find(module);
  if (found == modules_.end()) return std::nullopt;
  return found->second;
}

}  // namespace linnet
