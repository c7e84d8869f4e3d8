#include <string_view>

#include "entry.h"
#include "weights/safetensors_shards.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = linnet::parse_shard_index(text, "model.safetensors.index.json");
  if (!index.ok()) return 0;
  for (const auto& [shard, tensors] : *index) {
    // What is named is inside the folder.
    if (shard.find('/') != std::string::npos || tensors.empty()) __builtin_trap();
  }
  return 0;
}
