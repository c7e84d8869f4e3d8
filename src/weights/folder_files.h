// The small files of a model folder, read whole.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "json/read_json.h"
#include "linnet/status.h"

namespace linnet {

// Empty if there is no such file. Errors: kIo; kTooLarge above `bytes_max`. Messages name the file.
Result<std::optional<std::string>> read_folder_file(const std::filesystem::path& path, std::size_t bytes_max);

// `path`: for messages. Error (kCorrupt): no JSON object within `limits`, whose subject does not count.
Result<Json> parse_json_object(std::string_view text, const std::string& path, const JsonLimits& limits = {});

// As read_folder_file(), and kCorrupt for what is no JSON object within `limits`, whose subject does not count.
Result<std::optional<Json>> read_json_file(const std::filesystem::path& path, std::size_t bytes_max,
                                           const JsonLimits& limits = {});

}  // namespace linnet
