#include "engine/outbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <variant>

#include "linnet/engine.h"

namespace linnet {
namespace {

std::shared_ptr<Outbox> outbox_of(std::int32_t tokens_max) {
  return std::make_shared<Outbox>(RequestId{1}, OutboxOptions{.tokens_max = tokens_max}, std::make_shared<Doorbell>());
}

TEST(Outbox, KeepsOrderAndItsBound) {
  const auto outbox = outbox_of(2);
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(outbox->has_room());
    outbox->push(TokenId{round * 2});
    outbox->push(TokenId{round * 2 + 1});
    EXPECT_FALSE(outbox->has_room());
    EXPECT_EQ(outbox->try_next(), Event(TokenEvent{TokenId{round * 2}}));
    EXPECT_TRUE(outbox->has_room());
    EXPECT_EQ(outbox->try_next(), Event(TokenEvent{TokenId{round * 2 + 1}}));
    EXPECT_EQ(outbox->try_next(), std::nullopt);
  }
}

TEST(Outbox, TheFinalEventAlwaysHasRoomAndComesLast) {
  const auto outbox = outbox_of(1);
  outbox->push(TokenId{1});
  outbox->finish({.reason = FinishReason::kLength, .usage = {.completion_tokens = 1}, .error = std::nullopt});
  EXPECT_EQ(outbox->try_next(), Event(TokenEvent{TokenId{1}}));
  EXPECT_EQ(std::get<FinishEvent>(*outbox->try_next()).reason, FinishReason::kLength);
  EXPECT_EQ(outbox->try_next(), std::nullopt);
}

TEST(OutboxDeathTest, MisuseIsABug) {
  const auto outbox = outbox_of(1);
  outbox->push(TokenId{1});
  EXPECT_DEATH(outbox->push(TokenId{2}), "CHECK");
  EXPECT_DEATH(outbox->finish({.reason = FinishReason::kError, .usage = {}, .error = std::nullopt}), "CHECK");
  outbox->finish({});
  EXPECT_DEATH(outbox->finish({}), "CHECK");
  outbox->next();
  outbox->next();
  EXPECT_DEATH(outbox->next(), "CHECK");
}

TEST(Outbox, ReadyIsCalledForEachEventAndAtRegistration) {
  const auto outbox = outbox_of(4);
  int calls = 0;
  outbox->on_ready([&] { ++calls; });
  EXPECT_EQ(calls, 0);
  outbox->push(TokenId{1});
  EXPECT_EQ(calls, 1);
  int later = 0;
  outbox->on_ready([&] { ++later; });
  EXPECT_EQ(later, 1);
  outbox->on_ready([&] { outbox->try_next(); });  // the callback may read
  outbox->finish({});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(later, 1);
  outbox->on_ready({});
}

TEST(Outbox, AbandonedBeforeTheEndIsWithdrawn) {
  const auto open = outbox_of(4);
  { const RequestHandle handle(open); }
  EXPECT_TRUE(open->withdrawn());
  const auto finished = outbox_of(4);
  finished->finish({});
  { const RequestHandle handle(finished); }
  EXPECT_FALSE(finished->withdrawn());
  const auto replaced = outbox_of(4);
  RequestHandle handle(replaced);
  RequestHandle moved = std::move(handle);
  EXPECT_FALSE(replaced->withdrawn());
  moved = RequestHandle(finished);
  EXPECT_TRUE(replaced->withdrawn());
}

TEST(Outbox, NextWaitsForAnotherThread) {
  const auto outbox = outbox_of(2);
  std::thread engine([&] {
    outbox->push(TokenId{7});
    outbox->finish({});
  });
  EXPECT_EQ(outbox->next(), Event(TokenEvent{TokenId{7}}));
  EXPECT_TRUE(std::holds_alternative<FinishEvent>(outbox->next()));
  engine.join();
}

TEST(Outbox, RingsTheEngineWhenAFullOneGetsRoomAndWhenItIsWithdrawn) {
  const auto doorbell = std::make_shared<Doorbell>();
  Outbox outbox(RequestId{1}, OutboxOptions{.tokens_max = 1}, doorbell);
  outbox.push(TokenId{1});
  outbox.try_next();
  doorbell->wait();  // would not return without a ring
  outbox.withdraw(Withdrawal::kCancelled);
  doorbell->wait();
}

}  // namespace
}  // namespace linnet
