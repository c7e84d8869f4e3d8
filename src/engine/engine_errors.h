// Why the engine itself ends requests.
#pragma once

#include <cstdint>
#include <string>

#include "linnet/status.h"

namespace linnet {

inline Error late_error(std::int32_t generated) {
  return {ErrorCode::kDeadlineExceeded,
          "the request's time limit passed after " + std::to_string(generated) + " tokens of the answer; raise timeout_ms",
          "timeout_ms"};
}

inline Error stopping_error() {
  return {ErrorCode::kUnavailable, "the engine stopped before the answer was complete; send the request again later", ""};
}

inline Error not_finite_error(std::int32_t generated) {
  return {ErrorCode::kInternal,
          "the model's scores for token " + std::to_string(generated) +
              " of the answer are not finite; other requests are not affected",
          ""};
}

}  // namespace linnet
