// Matching errors in tests.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>

#include "linnet/status.h"

namespace linnet::testing {

// Whether `result` (a Status or a Result) is an error with this code whose message has all of these parts.
template <class R>
::testing::AssertionResult is_error(const R& result, ErrorCode code, std::initializer_list<std::string_view> parts) {
  if (result.ok()) return ::testing::AssertionFailure() << "no error";
  const Error& error = result.error();
  if (error.code != code)
    return ::testing::AssertionFailure() << "code " << static_cast<int>(error.code) << ": " << error.message;
  for (const std::string_view part : parts) {
    if (error.message.find(part) == std::string::npos) {
      return ::testing::AssertionFailure() << "\"" << error.message << "\" lacks \"" << part << "\"";
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace linnet::testing
