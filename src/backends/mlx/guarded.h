// Where MLX's exceptions end: the one place that catches them.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "linnet/status.h"

namespace linnet::mlx_backend {

// `work()`, a Status or a Result; an exception becomes an error (kInternal) that says what was being done and MLX's own words.
template <class Work>
auto guarded(const char* doing, Work&& work) -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (const std::exception& failure) {
    return Error{ErrorCode::kInternal, std::string("MLX failed ") + doing + ": " + failure.what(), ""};
  }
}

}  // namespace linnet::mlx_backend
