// Which KV may stand for which: sequences share a prefix only within one namespace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace linnet {

// By content: the same adapter under another name is the same, and the same name with other weights is not.
struct AdapterIdentity {
  std::string content;  // digest of its weights
  float scale = 1;

  bool operator==(const AdapterIdentity&) const = default;
};

// Everything beside the tokens that KV depends on, and who may see it.
struct PrefixNamespace {
  std::string weights;      // digest of the model's; empty where a cache belongs to one set of weights
  std::string numerics_id;  // kernel set, version, layout of KV
  std::int32_t block_tokens = 0;
  std::int32_t kv_bits = 0;  // 0: not quantized
  std::int32_t kv_group = 0;
  std::vector<AdapterIdentity> adapters;  // in the order in which they are applied
  std::string scope;                      // the request's: others do not see its prefixes
};

// Different parts give different names: each is written with its length.
std::string paged_prefix_namespace(const PrefixNamespace& parts);

}  // namespace linnet
