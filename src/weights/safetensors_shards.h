// The safetensors files of a model folder: one, or several with an index.
#pragma once

#include <string>
#include <vector>

#include "linnet/status.h"
#include "weights/safetensors.h"

namespace linnet {

struct SafetensorsShards {
  std::vector<SafetensorsFile> files;  // a tensor is in one of them
  std::vector<std::string> warnings;   // files beside them that no index names
};

// The files that model.safetensors.index.json names, each with the tensors that it should have; without an index, every
// model*.safetensors. Errors: kNotFound (no such file, one that the index names), kCorrupt (the index; a tensor that is not where
// the index says, or twice), those of SafetensorsFile::open. Messages name file and tensor.
Result<SafetensorsShards> open_safetensors_shards(const std::string& folder);

}  // namespace linnet
