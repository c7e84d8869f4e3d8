#include "hub/progress_bar.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace linnet {
namespace {

using std::chrono::milliseconds;

class ProgressBarTest : public testing::Test {
 protected:
  void begin(bool terminal) {
    bar_.emplace(clock_, terminal, [this](std::string_view text) { shown_ += text; });
  }
  // What is shown for it.
  std::string update(std::uint64_t done, milliseconds after, std::uint64_t total = 1'000'000'000) {
    clock_.advance(after);
    shown_.clear();
    bar_->update({done, total});
    return shown_;
  }

  VirtualClock clock_;
  std::string shown_;
  std::optional<ProgressBar> bar_;
};

TEST_F(ProgressBarTest, ATerminalHasABar) {
  begin(true);
  EXPECT_EQ(update(500'000'000, milliseconds(0)), "\r\x1b[K[============            ]  50 %  500.0 MB of 1.0 GB");
  EXPECT_EQ(update(501'000'000, milliseconds(99)), "");
  EXPECT_EQ(update(510'000'000, milliseconds(1)), "\r\x1b[K[============            ]  51 %  510.0 MB of 1.0 GB");
  // What was there before is no part of the speed: 101 MB in 1 s.
  EXPECT_EQ(update(601'000'000, milliseconds(900)),
            "\r\x1b[K[==============          ]  60 %  601.0 MB of 1.0 GB  101.0 MB/s  0:04 left");
  shown_.clear();
  bar_->say("a word");
  EXPECT_EQ(shown_, "\r\x1b[Ka word\n");
  EXPECT_EQ(update(1'000'000'000, milliseconds(1)), "\r\x1b[K[========================] 100 %  1.0 GB of 1.0 GB  499.5 MB/s");
  shown_.clear();
  bar_.reset();
  EXPECT_EQ(shown_, "\n");
}

TEST_F(ProgressBarTest, ElsewhereThereIsALineAtEveryTenth) {
  begin(false);
  EXPECT_EQ(update(0, milliseconds(0)), "");
  EXPECT_EQ(update(99'000'000, milliseconds(1000)), "");
  EXPECT_EQ(update(100'000'000, milliseconds(1000)), " 10 %  100.0 MB of 1.0 GB  50.0 MB/s  0:18 left\n");
  EXPECT_EQ(update(199'000'000, milliseconds(1000)), "");
  EXPECT_EQ(update(350'000'000, milliseconds(3'497'000)), " 35 %  350.0 MB of 1.0 GB  100.0 kB/s  1:48:20 left\n");
  EXPECT_EQ(update(1'000'000'000, milliseconds(1000)), "100 %  1.0 GB of 1.0 GB  285.6 kB/s\n");
  EXPECT_EQ(update(1'000'000'000, milliseconds(1000)), "");
  shown_.clear();
  bar_.reset();
  EXPECT_EQ(shown_, "");
}

TEST_F(ProgressBarTest, NothingToFetchIsWhole) {
  begin(true);
  EXPECT_EQ(update(0, milliseconds(0), 0), "\r\x1b[K[========================] 100 %  0 B of 0 B");
}

}  // namespace
}  // namespace linnet
