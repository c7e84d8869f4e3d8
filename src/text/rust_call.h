// The one place where what fails in Rust becomes an Error. Included by the .cc files of this folder only.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "linnet-text/src/lib.rs.h"
#include "linnet/status.h"
#include "rust/cxx.h"

namespace linnet {

// A failure's text is one byte for its kind, then the message (rust/src/failure.rs).
inline Error rust_error(std::string_view text) {
  const char kind = text.empty() ? 'f' : text.front();
  const std::string message(text.substr(text.empty() ? 0 : 1));
  switch (kind) {
    case 'i':
      return {.code = ErrorCode::kInvalidArgument, .message = message, .param = {}};
    case 'c':
      return {.code = ErrorCode::kCorrupt, .message = message, .param = {}};
    case 'u':
      return {.code = ErrorCode::kUnsupported, .message = message, .param = {}};
    case 't':
      return {.code = ErrorCode::kTooLarge, .message = message, .param = {}};
    default:
      return {.code = ErrorCode::kInternal, .message = message, .param = {}};
  }
}

// Runs `call`; gives its value, or the error that it reports.
template <class Call>
auto rust_call(Call&& call) -> Result<std::invoke_result_t<Call>> {
  try {
    return std::forward<Call>(call)();
  } catch (const rust::Error& error) {
    return rust_error(error.what());
  }
}

// As rust_call, for calls without a value.
template <class Call>
Status rust_status(Call&& call) {
  try {
    std::forward<Call>(call)();
    return {};
  } catch (const rust::Error& error) {
    return rust_error(error.what());
  }
}

inline rust::Slice<const std::uint8_t> rust_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace linnet
