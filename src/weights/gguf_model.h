// A GGUF model, in one file or split over several, as ModelParts.
#pragma once

#include <string>
#include <vector>

#include "linnet/status.h"
#include "weights/gguf.h"
#include "weights/model_file.h"

namespace linnet {

// The file and, if it is the first of a split model ("name-00001-of-00003.gguf"), the others beside it, in their order. Errors:
// those of GgufFile::open, naming the part; kUnsupported (not the first part), kCorrupt (counts that contradict each other).
Result<std::vector<GgufFile>> open_gguf_files(const std::string& path);

// Errors: as open_model_file(). `files`: one, or the parts of a split model.
Result<ModelParts> read_gguf_model(const std::string& path);
Result<ModelParts> read_gguf_model(std::vector<GgufFile> files);

}  // namespace linnet
