#pragma once

namespace linnet {

inline constexpr char kVersion[] = "0.1.0";

// The version of the library that a program runs with, which need not be the one of the headers that it was compiled with.
const char* version();

}  // namespace linnet
