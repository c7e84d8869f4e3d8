// Fetching a model from a Hugging Face hub into the shared cache.
#pragma once

#include <filesystem>

#include "hub/hub_name.h"
#include "hub/hub_options.h"
#include "linnet/status.h"

namespace linnet {

// Fetches what choose_files() says is needed and not there, and returns the snapshot's folder, or the (first) .gguf file in it. A
// file appears under its name whole and verified, the names of a snapshot when all its files are there. Another process that
// fetches the same is waited for. Errors: as HubClient::fetch(), choose_files(), PartialFile; kIo for a disk without room, before
// anything comes.
Result<std::filesystem::path> fetch_hub_model(const HubName& name, const HubOptions& options);

}  // namespace linnet
