#include "api/reply_ids.h"

#include <gtest/gtest.h>

#include <set>

namespace linnet::api {
namespace {

TEST(ReplyIds, AreHexAndNeverRepeat) {
  ReplyIds ids(1);
  std::set<std::string> seen;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = ids.next();
    EXPECT_EQ(id.size(), 32U);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_TRUE(seen.insert(id).second);
  }
}

TEST(ReplyIds, FollowFromTheSeed) {
  EXPECT_EQ(ReplyIds(5).next(), ReplyIds(5).next());
  EXPECT_NE(ReplyIds(5).next(), ReplyIds(6).next());
}

}  // namespace
}  // namespace linnet::api
