// Sizes as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace linnet {

// "17 B", "1.5 kB", "98.4 MB", "7.6 GB": powers of ten, as disks and hubs count.
std::string size_text(std::uint64_t bytes);

}  // namespace linnet
