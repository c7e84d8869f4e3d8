#include "engine/inbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

Submission submission(std::uint64_t id) {
  return {.request = {.prompt = prompt_of(1)},
          .limit = 2,
          .choices = {
              {.outbox = std::make_shared<Outbox>(RequestId{id}, OutboxOptions{.tokens_max = 4}, std::make_shared<Doorbell>())}}};
}

TEST(Inbox, CountsWaitingUntilTheyLeave) {
  Inbox inbox(2);
  EXPECT_TRUE(inbox.push(submission(1)).ok());
  EXPECT_TRUE(inbox.push(submission(2)).ok());
  const Status full = inbox.push(submission(3));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kQueueFull);
  EXPECT_NE(full.error().message.find("2 requests are waiting"), std::string::npos);
  std::vector<Submission> drained;
  inbox.drain(drained);
  ASSERT_EQ(drained.size(), 2U);
  EXPECT_EQ(drained[0].choices[0].outbox->id(), RequestId{1});
  EXPECT_FALSE(inbox.push(submission(3)).ok()) << "drained is not admitted";
  inbox.left(1);
  EXPECT_TRUE(inbox.push(submission(3)).ok());
  EXPECT_EQ(inbox.waiting(), 2);
}

TEST(Inbox, ClosedRefuses) {
  Inbox inbox(2);
  EXPECT_FALSE(inbox.closed());
  inbox.close();
  EXPECT_TRUE(inbox.closed());
  const Status status = inbox.push(submission(1));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace linnet
