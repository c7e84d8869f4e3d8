#pragma once

namespace linnet {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace linnet
