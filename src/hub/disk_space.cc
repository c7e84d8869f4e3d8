#include "hub/disk_space.h"

#include <string>
#include <system_error>

namespace linnet {

Status check_disk_space(const std::filesystem::path& folder, std::uint64_t needed, std::string_view variable) {
  std::error_code failed;
  const std::filesystem::space_info space = std::filesystem::space(folder, failed);
  if (failed || space.available >= needed) return {};
  return Error{ErrorCode::kIo,
               folder.string() + " has " + std::to_string(space.available) + " bytes free and the model needs " +
                   std::to_string(needed) + " while it is fetched; free some, or set " + std::string(variable) +
                   " to a folder on another disk",
               folder.string()};
}

}  // namespace linnet
