#include "engine/waiting_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine_rig.h"

namespace linnet {
namespace {

class Waiting {
 public:
  std::shared_ptr<Outbox> add(std::uint64_t id, std::int32_t priority) {
    auto outbox = std::make_shared<Outbox>(RequestId{id}, OutboxOptions{.tokens_max = 4}, doorbell_);
    list.arrivals().push_back({.request = {.prompt = prompt_of(1), .priority = priority},
                               .limit = 2,
                               .choices = {{.outbox = outbox}},
                               .open = std::make_shared<OpenRequest>()});
    list.accept_arrivals();
    return outbox;
  }
  std::uint64_t take() { return static_cast<std::uint64_t>(list.take_next().choices[0].outbox->id()); }

  WaitingList list;

 private:
  std::shared_ptr<Doorbell> doorbell_ = std::make_shared<Doorbell>();
};

TEST(WaitingList, PriorityThenArrival) {
  Waiting waiting;
  const std::vector<std::int32_t> priorities = {0, 5, 0, 5, -3};
  for (std::size_t index = 0; index < priorities.size(); ++index) waiting.add(index + 1, priorities[index]);
  EXPECT_EQ(waiting.list.next().choices[0].outbox->id(), RequestId{2});
  std::vector<std::uint64_t> order;
  while (!waiting.list.empty()) order.push_back(waiting.take());
  EXPECT_EQ(order, (std::vector<std::uint64_t>{2, 4, 1, 3, 5}));
}

TEST(WaitingList, NobodyIsPassedOverForEver) {
  Waiting waiting;
  waiting.add(1, 0);
  waiting.add(2, 0);
  std::uint64_t id = 3;
  for (std::int32_t passed = 0; passed < WaitingList::kPassedOverMax; ++passed) {
    waiting.add(id, 1'000'000'000);
    EXPECT_EQ(waiting.take(), id++);
  }
  waiting.add(id, 1'000'000'000);
  EXPECT_EQ(waiting.take(), 1U);
  EXPECT_EQ(waiting.take(), 2U);
  EXPECT_EQ(waiting.take(), id);
}

TEST(WaitingList, WithdrawnLeaveAndTheRestKeepsItsOrder) {
  Waiting waiting;
  std::vector<std::shared_ptr<Outbox>> outboxes;
  for (std::uint64_t id = 1; id <= 5; ++id) outboxes.push_back(waiting.add(id, 0));
  outboxes[0]->withdraw(Withdrawal::kCancelled);
  outboxes[3]->withdraw(Withdrawal::kCancelled);
  std::vector<Leaver> gone;
  waiting.list.take_leavers({}, gone);
  ASSERT_EQ(gone.size(), 2U);
  EXPECT_EQ(gone[1].outbox->id(), RequestId{4});
  EXPECT_EQ(waiting.take(), 2U);
  waiting.list.take_all(gone);
  EXPECT_EQ(gone.size(), 4U);
  EXPECT_TRUE(waiting.list.empty());
}

}  // namespace
}  // namespace linnet
