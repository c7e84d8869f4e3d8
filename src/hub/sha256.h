// Checksums of files.
#pragma once

#include <filesystem>
#include <string>

#include "linnet/status.h"

namespace linnet {

// SHA-256 (FIPS 180-4) of a file's content, in lower-case hexadecimal. Error: kIo.
Result<std::string> sha256_of_file(const std::filesystem::path& path);

}  // namespace linnet
