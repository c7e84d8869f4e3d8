// Whether what is to be fetched will fit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "linnet/status.h"

namespace linnet {

// Fine if the disk of `folder` has `needed` bytes free, or does not tell. Error (kIo): both numbers, and `variable`, the
// environment variable that names a folder on another disk.
Status check_disk_space(const std::filesystem::path& folder, std::uint64_t needed, std::string_view variable);

}  // namespace linnet
