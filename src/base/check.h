// CHECK: a condition that only a fault of ours can break. On in every build; prints place and values, then aborts.
#pragma once

#include <string_view>

namespace linnet {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view detail = {});

}  // namespace linnet

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) [[unlikely]]                            \
      ::linnet::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_MSG(condition, detail)                                    \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::linnet::check_failed(__FILE__, __LINE__, #condition, (detail)); \
  } while (false)
