#include "hub/size_text.h"

#include <gtest/gtest.h>

namespace linnet {
namespace {

TEST(SizeText, UnitsChangeWhereTheNumberWouldBeLong) {
  const struct {
    std::uint64_t bytes;
    const char* text;
  } cases[] = {{0, "0 B"},          {999, "999 B"},          {1000, "1.0 kB"},          {999'949, "999.9 kB"},
               {999'951, "1.0 MB"}, {98'362'432, "98.4 MB"}, {7'600'000'000, "7.6 GB"}, {UINT64_MAX, "18.4 EB"}};
  for (const auto& c : cases) EXPECT_EQ(size_text(c.bytes), c.text);
}

}  // namespace
}  // namespace linnet
