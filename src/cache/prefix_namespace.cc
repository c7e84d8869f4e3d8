#include "cache/prefix_namespace.h"

#include <bit>
#include <string_view>

namespace linnet {
namespace {

void append(std::string& name, std::string_view part) {
  name += std::to_string(part.size());
  name += ':';
  name += part;
}

}  // namespace

std::string paged_prefix_namespace(const PrefixNamespace& parts) {
  std::string name = "paged-v1";
  append(name, parts.weights);
  append(name, parts.numerics_id);
  for (const std::int32_t number : {parts.block_tokens, parts.kv_bits, parts.kv_group}) append(name, std::to_string(number));
  append(name, std::to_string(parts.adapters.size()));
  for (const AdapterIdentity& adapter : parts.adapters) {
    append(name, adapter.content);
    append(name, std::to_string(std::bit_cast<std::uint32_t>(adapter.scale)));
  }
  append(name, parts.scope);
  return name;
}

}  // namespace linnet
