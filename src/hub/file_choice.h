// Which of a repository's files a model needs.
#pragma once

#include <string>
#include <vector>

#include "hub/hub_listing.h"
#include "hub/hub_name.h"
#include "linnet/status.h"

namespace linnet {

// Without a quantization or file: the safetensors weights (the shards of an index, else model.safetensors, else those that are no
// adapter), with configuration, tokenizer and chat templates; without safetensors the one GGUF there is. With one of them: that
// GGUF, all parts of it if it is split. In order of path. Errors: kNotFound if there is no such file, naming what there is;
// kInvalidArgument if several GGUFs would do, listing them with sizes.
Result<std::vector<HubFile>> choose_files(const std::vector<HubFile>& files, const HubName& name);

}  // namespace linnet
