// The safetensors files of a model folder: one, or several with an index.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/status.h"
#include "weights/safetensors.h"

namespace linnet {

// File -> its tensors.
using ShardIndex = std::map<std::string, std::vector<std::string>>;

// The text of a model.safetensors.index.json. Every file's name is one inside the folder. `path`: for messages. Error: kCorrupt.
Result<ShardIndex> parse_shard_index(std::string_view text, const std::string& path);

struct SafetensorsShards {
  std::vector<SafetensorsFile> files;  // a tensor is in one of them
  std::vector<std::string> warnings;   // files beside them that no index names
};

// The files that model.safetensors.index.json names, each with the tensors that it should have; without an index, every
// model*.safetensors. Errors: kNotFound (no such file, one that the index names), kCorrupt (the index; a tensor that is not where
// the index says, or twice), those of SafetensorsFile::open. Messages name file and tensor.
Result<SafetensorsShards> open_safetensors_shards(const std::string& folder);

}  // namespace linnet
