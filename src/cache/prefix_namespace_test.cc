#include "cache/prefix_namespace.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace linnet {
namespace {

const PrefixNamespace kBase{.weights = "w1", .numerics_id = "cpu-amx", .block_tokens = 32, .adapters = {}, .scope = ""};

std::set<std::string> names_of(const std::vector<PrefixNamespace>& all) {
  std::set<std::string> names;
  for (const PrefixNamespace& parts : all) names.insert(paged_prefix_namespace(parts));
  return names;
}

PrefixNamespace with_adapters(std::vector<AdapterIdentity> adapters) {
  PrefixNamespace parts = kBase;
  parts.adapters = std::move(adapters);
  return parts;
}

TEST(Lifecycle, S06a_TheNamespaceSeparatesAdapterSetsByContent) {
  const std::vector<PrefixNamespace> all = {
      kBase,
      with_adapters({{"a", 1}}),
      with_adapters({{"a", 2}}),
      with_adapters({{"b", 1}}),
      with_adapters({{"a", 1}, {"b", 1}}),
      with_adapters({{"b", 1}, {"a", 1}}),
      with_adapters({{"ab", 1}}),
      with_adapters({{"a", 1}, {"a", 1}}),
      with_adapters({{"", 1}}),
  };
  EXPECT_EQ(names_of(all).size(), all.size());
  EXPECT_EQ(paged_prefix_namespace(with_adapters({{"a", 1}})), paged_prefix_namespace(with_adapters({{"a", 1}})));
}

TEST(Lifecycle, S06b_TheNamespaceSeparatesKvLayouts) {
  std::vector<PrefixNamespace> all(7, kBase);
  all[1].block_tokens = 16;
  all[2].kv_bits = 8;
  all[3].kv_bits = 4;
  all[4].kv_group = 64;
  all[5].numerics_id = "cpu-avx512";
  all[6].weights = "w2";
  EXPECT_EQ(names_of(all).size(), all.size());
}

// Whatever a scope looks like, it does not reach into other parts.
TEST(PrefixNamespace, NoScopeSpellsAnotherNamespace) {
  std::vector<PrefixNamespace> all;
  for (const char* scope : {"", "0:", "1:a", "w1", "1:01:0", "\n"}) {
    PrefixNamespace parts = kBase;
    parts.scope = scope;
    all.push_back(parts);
    parts.numerics_id += scope;
    parts.scope = "x";
    all.push_back(parts);
    parts.weights += scope;
    parts.scope = std::string("y") + scope;
    all.push_back(parts);
  }
  EXPECT_EQ(names_of(all).size(), all.size());
}

}  // namespace
}  // namespace linnet
