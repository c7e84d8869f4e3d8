#include "server/model_set.h"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/model_loader.h"
#include "server/scripted_engine.h"

namespace linnet {
namespace {

using std::chrono::seconds;

// Models a, b, c, ... that take `least` bytes each, of a budget of 100.
class Models {
 public:
  explicit Models(const std::vector<std::uint64_t>& least, std::optional<seconds> idle_time = {})
      : set({.memory_budget = 100, .idle_time = idle_time}, clock) {
    char id = 'a';
    for (const std::uint64_t bytes : least) add(std::string(1, id++), bytes);
  }

  void add(const std::string& id, std::uint64_t least, bool pinned = false) {
    set.add(
        {.id = id, .aliases = {id + "-alias"}, .least_bytes = least, .pinned = pinned, .load = [this, id](std::uint64_t budget) {
           return load(id, budget);
         }});
  }
  Result<std::unique_ptr<TextEngine>> load(const std::string& id, std::uint64_t budget) {
    ++loads[id];
    budgets[id] = budget;
    if (failing == id) return Error{ErrorCode::kCorrupt, id + " is broken", ""};
    return std::unique_ptr<TextEngine>(std::make_unique<ScriptedEngine>(id));
  }
  // Uses it once, at the next second.
  Status use(std::size_t index) {
    clock.advance(seconds(1));
    LINNET_RETURN_IF_ERROR(set.load(index));
    return set.acquire(index) ? Status() : Status(Error{ErrorCode::kInternal, "not loaded", ""});
  }
  std::string loaded() const {
    std::string ids;
    for (std::size_t i = 0; i < set.size(); ++i) ids += set.info(i).loaded ? set.info(i).card.id : "";
    return ids;
  }

  VirtualClock clock;
  std::map<std::string, int> loads;
  std::map<std::string, std::uint64_t> budgets;
  std::string failing;
  ModelSet set;
};

TEST(ModelSet, ALoneModelGoesByAnyNameAndSeveralByTheirOwn) {
  Models one({10});
  EXPECT_EQ(one.set.model_for("gpt-4").value(), 0U);
  EXPECT_EQ(one.set.model_for("").value(), 0U);
  EXPECT_FALSE(one.set.exact_model("gpt-4").ok());
  Models two({10, 10});
  EXPECT_EQ(two.set.model_for("b").value(), 1U);
  EXPECT_EQ(two.set.model_for("b-alias").value(), 1U);
  const Result<std::size_t> unknown = two.set.model_for("gpt-4\n");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(unknown.error().message, "there is no model \"gpt-4?\" here; there is a, b");
}

TEST(ModelSet, LoadsOnceAndGrantsEqualSharesOrWhatIsNeeded) {
  Models models({10, 40, 10, 10});
  EXPECT_FALSE(models.set.acquire(0));
  for (const std::size_t index : {0U, 0U, 1U, 2U}) EXPECT_TRUE(models.use(index).ok());
  EXPECT_EQ(models.loads["a"], 1);
  EXPECT_EQ(models.budgets, (std::map<std::string, std::uint64_t>{{"a", 25}, {"b", 40}, {"c", 25}}));
  EXPECT_TRUE(models.use(3).ok());
  EXPECT_EQ(models.budgets["d"], 10U);  // the 10 that are left are enough: nobody has to go
  EXPECT_EQ(models.loaded(), "abcd");
}

TEST(ModelSet, TheLeastRecentlyUsedGoesForMemory) {
  Models models({50, 50, 50});
  EXPECT_TRUE(models.use(0).ok());
  EXPECT_TRUE(models.use(1).ok());
  EXPECT_TRUE(models.use(0).ok());
  EXPECT_TRUE(models.use(2).ok());
  EXPECT_EQ(models.loaded(), "ac");
}

TEST(ModelSet, WhatIsInUseOrPinnedStays) {
  Models models({50, 50});
  models.add("p", 50, true);
  EXPECT_TRUE(models.use(2).ok());
  EXPECT_TRUE(models.use(0).ok());
  std::optional<ModelLease> lease = models.set.acquire(0);
  const Status full = models.use(1);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(models.set.unload(0).ok());
  lease.reset();
  EXPECT_TRUE(models.use(1).ok());
  EXPECT_EQ(models.loaded(), "bp");
  EXPECT_TRUE(models.set.unload(2).ok());  // told to, a pinned one goes
  EXPECT_EQ(models.loaded(), "b");
}

TEST(ModelSet, NeverFittingIsSaidAtOnce) {
  Models models({10, 101});
  EXPECT_TRUE(models.use(0).ok());
  const Status status = models.use(1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(models.loaded(), "a");  // nobody went in vain
  EXPECT_EQ(models.loads["b"], 0);
}

TEST(ModelSet, AFailedLoadLeavesNothingBehind) {
  Models models({60, 60});
  models.failing = "a";
  EXPECT_EQ(models.use(0).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(models.use(1).ok());  // its memory is free again
  EXPECT_TRUE(models.set.unload(1).ok());
  models.failing.clear();
  EXPECT_TRUE(models.use(0).ok());
  EXPECT_EQ(models.loads["a"], 2);
}

TEST(ModelSet, IdleModelsGo) {
  Models models({10, 10}, seconds(60));
  EXPECT_TRUE(models.use(0).ok());
  EXPECT_TRUE(models.use(1).ok());
  std::optional<ModelLease> lease = models.set.acquire(1);
  models.clock.advance(seconds(58));
  models.set.unload_idle();
  EXPECT_EQ(models.loaded(), "ab");
  EXPECT_EQ(models.set.loaded().size(), 2U);  // looking is no use
  models.clock.advance(seconds(1));
  models.set.unload_idle();
  EXPECT_EQ(models.loaded(), "b");
  models.clock.advance(seconds(100));
  lease.reset();  // used until now
  models.set.unload_idle();
  EXPECT_EQ(models.loaded(), "b");
  models.clock.advance(seconds(60));
  models.set.unload_idle();
  EXPECT_EQ(models.loaded(), "");
  EXPECT_EQ(models.set.info(0).card.id, "a");
}

TEST(ModelLoader, WhoAsksForALoadUnderWaySharesItsOutcome) {
  VirtualClock clock;
  ModelSet set({.memory_budget = 100}, clock);
  std::promise<void> begun;
  std::promise<void> go;
  int loads = 0;
  set.add({.id = "a", .load = [&](std::uint64_t) -> Result<std::unique_ptr<TextEngine>> {
             if (++loads > 1) return std::unique_ptr<TextEngine>(std::make_unique<ScriptedEngine>("a"));
             begun.set_value();
             go.get_future().wait();
             return Error{ErrorCode::kIo, "the disk is gone", ""};
           }});
  ModelLoader loader(set, std::nullopt);
  const auto ask = [&] {
    auto outcome = std::make_shared<std::promise<Status>>();
    loader.load(0, [outcome](const Status& status) { outcome->set_value(status); });
    return outcome->get_future();
  };
  std::future<Status> first = ask();
  begun.get_future().wait();
  std::future<Status> second = ask();
  go.set_value();
  EXPECT_EQ(first.get().error().code, ErrorCode::kIo);
  EXPECT_EQ(second.get().error().code, ErrorCode::kIo);
  EXPECT_EQ(loads, 1);
  EXPECT_TRUE(ask().get().ok());
  EXPECT_EQ(loads, 2);
  EXPECT_TRUE(set.acquire(0));
}

}  // namespace
}  // namespace linnet
