#include "hub/process.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace linnet {
namespace {

TEST(Process, EndsAreReported) {
  struct Case {
    std::vector<std::string> argv;
    std::string message;  // empty: success
  };
  const Case cases[] = {
      {{"true"}, ""},
      {{"sh", "-c", "exit 7"}, "trouble: sh ended with status 7"},
      {{"sh", "-c", "kill -9 $$"}, "trouble: sh ended with signal 9"},
      {{"no-such-program"}, "trouble: cannot run no-such-program: No such file or directory"},
      {{"test", "a b;c $d", "=", "a b;c $d"}, ""},  // arguments pass whole, through no shell
  };
  for (const Case& c : cases) {
    const Status status = run_process(c.argv, "trouble");
    EXPECT_EQ(status.ok() ? "" : status.error().message, c.message) << c.argv.back();
    if (!status.ok()) {
      EXPECT_EQ(status.error().code, ErrorCode::kIo);
    }
  }
}

// The standard output of `linnet get` is the model's path and nothing else.
TEST(Process, OutputGoesToStandardError) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Status status = run_process({"echo", "words"}, "trouble");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "words\n");
  EXPECT_TRUE(status.ok());
}

}  // namespace
}  // namespace linnet
