// What a repository on a hub consists of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/status.h"

namespace linnet {

struct HubFile {
  std::string path;  // below the repository; is_path_below()
  std::uint64_t bytes = 0;
  // Lower-case hexadecimal, 64 digits: SHA-256 of the content (large files); 40: its git blob name. It names the blob in the
  // cache.
  std::string hash;

  bool operator==(const HubFile&) const = default;
};

struct HubListing {
  std::string commit;  // 40 hexadecimal digits
  std::vector<HubFile> files;

  bool operator==(const HubListing&) const = default;
};

// Reads the reply of /api/models/ORG/NAME/revision/REVISION?blobs=true. Error (kCorrupt): not such a reply, or one that names a
// path or checksum which is none: the names become paths on this disk.
Result<HubListing> parse_hub_listing(std::string_view json);

}  // namespace linnet
