// One test for each clause R01–R20 of docs/contracts.md.
#include "speculation/rollback.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace linnet {
namespace {

constexpr const char* kIncomplete = "cache exposes an incomplete speculative transaction";
constexpr const char* kDiscard = "speculative state is invalid and must be discarded";
constexpr const char* kDraftCount = "invalid speculative draft count";
constexpr const char* kCannotBegin = "speculative state cannot begin this round";
constexpr const char* kAcceptance = "invalid speculative acceptance count";

using Calls = std::vector<std::string>;

std::string text_of(const Keep& keep) {
  if (const auto* one = std::get_if<std::int64_t>(&keep)) return std::to_string(*one);
  std::string text;
  for (const std::int64_t each : std::get<std::span<const std::int64_t>>(keep)) text += "," + std::to_string(each);
  return "[" + text.substr(std::min<std::size_t>(1, text.size())) + "]";
}

// Writes down what is asked of it, and fails where it is told to.
class RecordingLayer : public LayerState {
 public:
  enum Functions : unsigned { kNone = 0, kBegin = 1, kCommit = 2, kRollback = 4, kAll = 7 };

  RecordingLayer(Calls& calls, std::string name, unsigned functions, bool trims = false)
      : calls_(calls), name_(std::move(name)), functions_(functions), trims_(trims) {}

  std::int64_t offset() const override { return tokens; }
  std::optional<std::int64_t> ring_capacity() const override { return capacity; }
  bool can_trim() const override {
    ++asked;
    return trims_;
  }
  Status trim(std::int64_t count) override { return call("trim " + std::to_string(count)); }
  RowSpeculativeState round_functions() override {
    ++bound;
    RowSpeculativeState round;
    if ((functions_ & kBegin) != 0) round.spec_round_begin = [this] { return call("begin"); };
    if ((functions_ & kCommit) != 0) round.spec_round_commit = [this] { return call("commit"); };
    if ((functions_ & kRollback) != 0) {
      round.spec_round_rollback = [this](const Keep& keep) { return call("keep " + text_of(keep)); };
    }
    return round;
  }

  std::int64_t tokens = 0;
  std::optional<std::int64_t> capacity;
  std::string failing;  // the call that fails
  mutable int asked = 0;
  int bound = 0;

 private:
  Status call(const std::string& what) {
    calls_.push_back(name_ + " " + what);
    if (what != failing) return {};
    return Error{ErrorCode::kIo, name_ + " failed in " + what, ""};
  }

  Calls& calls_;
  std::string name_;
  unsigned functions_;
  bool trims_;
};

template <class T>
std::string message(const T& result) {
  return result.ok() ? "ok" : result.error().message;
}

using Rows = std::vector<std::int64_t>;

class Rollback : public testing::Test {
 protected:
  RecordingLayer& add(unsigned functions = RecordingLayer::kAll, bool trims = false) {
    layers_.push_back(
        std::make_unique<RecordingLayer>(calls_, std::string(1, static_cast<char>('a' + layers_.size())), functions, trims));
    return *layers_.back();
  }
  std::vector<LayerState*> pointers() const {
    std::vector<LayerState*> result;
    for (const auto& layer : layers_) result.push_back(layer.get());
    return result;
  }
  SpeculativeTransaction<std::int64_t> bind() { return std::move(bind_cache_rollback(pointers())).value(); }
  SpeculativeTransaction<RowAcceptance> bind_rows(std::int64_t rows) {
    return std::move(bind_row_cache_rollback(pointers(), rows)).value();
  }
  // What has been asked of the layers since the last look.
  Calls calls() { return std::exchange(calls_, {}); }

  Calls calls_;
  std::vector<std::unique_ptr<RecordingLayer>> layers_;
};

TEST_F(Rollback, R01_CanBeginAsksInOrderUpToTheFirstThatDoesNotFit) {
  const RecordingLayer& first = add(RecordingLayer::kNone, true);
  const RecordingLayer& second = add(RecordingLayer::kNone, false);
  const RecordingLayer& third = add(RecordingLayer::kNone, true);
  auto transaction = bind();
  EXPECT_FALSE(*transaction.can_begin(1));
  EXPECT_EQ(first.asked, 1);
  EXPECT_EQ(second.asked, 1);
  EXPECT_EQ(third.asked, 0);

  layers_.erase(layers_.begin() + 1);
  auto open = bind();
  EXPECT_TRUE(*open.can_begin(1));
  ASSERT_TRUE(open.begin(1).ok());
  const int asked = first.asked;
  EXPECT_FALSE(*open.can_begin(1));
  EXPECT_EQ(first.asked, asked);  // the open round suffices
}

TEST_F(Rollback, R02_CanBeginChangesNothing) {
  add();
  add(RecordingLayer::kNone, true);
  auto transaction = bind();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(*transaction.can_begin(4));
  EXPECT_EQ(calls(), Calls{});
  ASSERT_TRUE(transaction.begin(2).ok());
  EXPECT_FALSE(*transaction.can_begin(2));
  EXPECT_TRUE(transaction.resolve(2).ok());
}

TEST_F(Rollback, R03_AnInvalidStateAnswersEveryCallWithDiscard) {
  add().failing = "begin";
  auto transaction = bind();
  ASSERT_FALSE(transaction.begin(1).ok());
  for (const std::int64_t drafts : {std::int64_t{1}, std::int64_t{-1}, kDraftsMax + 1}) {
    EXPECT_EQ(message(transaction.can_begin(drafts)), kDiscard) << drafts;
    EXPECT_EQ(message(transaction.begin(drafts)), kDiscard) << drafts;
    EXPECT_EQ(message(transaction.resolve(drafts)), kDiscard) << drafts;
  }
  EXPECT_EQ(transaction.can_begin(1).error().code, ErrorCode::kInternal);
}

TEST_F(Rollback, R04_DraftCountsOutsideTheLimitsAreErrors) {
  add();
  auto transaction = bind();
  for (const std::int64_t drafts : {std::int64_t{-1}, INT64_MIN, kDraftsMax + 1, INT64_MAX}) {
    EXPECT_EQ(message(transaction.can_begin(drafts)), kDraftCount) << drafts;
    EXPECT_EQ(message(transaction.begin(drafts)), kDraftCount) << drafts;
  }
  EXPECT_EQ(transaction.begin(-1).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(calls(), Calls{});
  for (const std::int64_t drafts : {std::int64_t{0}, kDraftsMax}) EXPECT_TRUE(*transaction.can_begin(drafts)) << drafts;
}

TEST_F(Rollback, R05_ARefusedBeginChangesNothing) {
  add(RecordingLayer::kNone, true);
  RecordingLayer& ring = add(RecordingLayer::kNone, true);
  ring.capacity = 10;
  ring.tokens = 9;
  auto transaction = bind();
  EXPECT_EQ(message(transaction.begin(1)), kCannotBegin);
  EXPECT_EQ(transaction.begin(1).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(message(transaction.resolve(0)), kAcceptance);  // no round was opened
  ring.tokens = 0;
  ASSERT_TRUE(transaction.begin(3).ok());
  EXPECT_EQ(message(transaction.begin(2)), kCannotBegin);
  EXPECT_TRUE(transaction.resolve(1).ok());  // still the round of 3
  EXPECT_EQ(calls(), (Calls{"a trim 2", "b trim 2"}));
}

TEST_F(Rollback, R06_BeginRecordsTheRoundFirstAndBeginsLayersInOrder) {
  Calls seen;
  std::optional<SpeculativeTransaction<std::int64_t>> transaction;
  std::vector<TransactionLayer<std::int64_t>> layers;
  for (const char* name : {"first", "second"}) {
    layers.push_back({.fits = [](std::int64_t) { return true; },
                      .begin =
                          [&, name](std::int64_t drafts) {
                            seen.push_back(name + std::to_string(drafts) + (*transaction->can_begin(drafts) ? " idle" : " open"));
                            return Status();
                          },
                      .resolve = [](std::int64_t, std::int64_t) { return Status(); }});
  }
  transaction = bind_transaction<std::int64_t>(std::move(layers), [](std::int64_t, std::int64_t) { return true; });
  ASSERT_TRUE(transaction->begin(2).ok());
  EXPECT_EQ(seen, (Calls{"first2 open", "second2 open"}));
}

TEST_F(Rollback, R07_RingCapacityIsStrict) {
  RecordingLayer& ring = add(RecordingLayer::kAll);  // round functions do not help a ring
  ring.capacity = 10;
  auto transaction = bind();
  const struct {
    std::int64_t offset;
    std::int64_t drafts;
    bool fits;
  } cases[] = {{0, 8, true}, {0, 9, false}, {5, 3, true},   {5, 4, false},
               {8, 0, true}, {9, 0, false}, {10, 0, false}, {25, 0, false}};
  for (const auto& c : cases) {
    ring.tokens = c.offset;  // read anew at every round
    EXPECT_EQ(*transaction.can_begin(c.drafts), c.fits) << c.offset << " " << c.drafts;
  }
  EXPECT_EQ(message(transaction.begin(0)), kCannotBegin);
  EXPECT_EQ(calls(), Calls{});  // before anything is written
}

TEST_F(Rollback, R08_WithoutARingRoundFunctionsOrTrimmingFit) {
  const struct {
    unsigned functions;
    bool trims;
    bool fits;
  } cases[] = {{RecordingLayer::kAll, false, true},
               {RecordingLayer::kAll, true, true},
               {RecordingLayer::kNone, true, true},
               {RecordingLayer::kNone, false, false}};
  for (const auto& c : cases) {
    layers_.clear();
    add(c.functions, c.trims).tokens = 1'000'000;
    EXPECT_EQ(*bind().can_begin(5), c.fits) << c.functions << c.trims;
  }
}

TEST_F(Rollback, R09_AFailingBeginInvalidatesAndIsPassedOn) {
  add();
  add().failing = "begin";
  add();
  auto transaction = bind();
  const Status status = transaction.begin(2);
  EXPECT_EQ(message(status), "b failed in begin");
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(calls(), (Calls{"a begin", "b begin"}));  // c not begun, a not undone
  EXPECT_EQ(message(transaction.resolve(1)), kDiscard);
}

TEST_F(Rollback, R10_AWrongAcceptanceLeavesTheRoundOpen) {
  add();
  auto transaction = bind();
  EXPECT_EQ(message(transaction.resolve(0)), kAcceptance);  // without a round
  ASSERT_TRUE(transaction.begin(2).ok());
  for (const std::int64_t accepted : {std::int64_t{-1}, std::int64_t{3}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(message(transaction.resolve(accepted)), kAcceptance) << accepted;
  EXPECT_EQ(transaction.resolve(3).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(calls(), Calls{"a begin"});
  EXPECT_TRUE(transaction.resolve(1).ok());
  EXPECT_EQ(message(transaction.resolve(1)), kAcceptance);  // closed by now
}

TEST_F(Rollback, R11_AFailingResolveInvalidates) {
  for (const std::int64_t accepted : {1, 2}) {
    layers_.clear();
    add();
    RecordingLayer& failing = add();
    failing.failing = accepted == 2 ? "commit" : "keep 2";
    add();
    auto transaction = bind();
    ASSERT_TRUE(transaction.begin(2).ok());
    calls();
    EXPECT_EQ(message(transaction.resolve(accepted)), "b failed in " + failing.failing);
    EXPECT_EQ(calls().size(), 2U);  // c is not asked
    EXPECT_EQ(message(transaction.can_begin(1)), kDiscard);
  }
}

TEST_F(Rollback, R12_SuccessClosesTheRound) {
  add();
  auto transaction = bind();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(transaction.begin(1).ok());
    ASSERT_TRUE(transaction.resolve(1).ok());
    EXPECT_TRUE(*transaction.can_begin(1));
  }
}

TEST_F(Rollback, R13_OneSequenceRollsBackTrimsOrCommits) {
  add();
  add(RecordingLayer::kNone, true);
  auto transaction = bind();
  const struct {
    std::int64_t drafts;
    std::int64_t accepted;
    Calls calls;
  } cases[] = {{3, 0, {"a begin", "a keep 1", "b trim 3"}},
               {3, 2, {"a begin", "a keep 3", "b trim 1"}},
               {3, 3, {"a begin", "a commit"}},
               {0, 0, {"a begin", "a commit"}}};  // one sequence: the bracket stands without drafts too
  for (const auto& c : cases) {
    ASSERT_TRUE(transaction.begin(c.drafts).ok());
    ASSERT_TRUE(transaction.resolve(c.accepted).ok());
    EXPECT_EQ(calls(), c.calls) << c.drafts << " " << c.accepted;
  }
}

TEST_F(Rollback, R14_AnIncompleteSetOfRoundFunctionsIsRefusedAtBinding) {
  for (unsigned functions = 0; functions <= RecordingLayer::kAll; ++functions) {
    layers_.clear();
    add();
    RecordingLayer& layer = add(functions, true);
    layer.capacity = 100;
    const bool complete = functions == RecordingLayer::kNone || functions == RecordingLayer::kAll;
    const auto one = bind_cache_rollback(pointers());
    EXPECT_EQ(message(one), complete ? "ok" : kIncomplete) << functions;
    if (!one.ok()) {
      EXPECT_EQ(one.error().code, ErrorCode::kUnsupported);
    }
    EXPECT_EQ(layer.bound, 1);
    const auto rows = bind_row_cache_rollback(pointers(), 2);  // rows have no other way
    EXPECT_EQ(message(rows), functions == RecordingLayer::kAll ? "ok" : kIncomplete) << functions;
  }
}

TEST_F(Rollback, R15_RowsWithoutDraftsTouchNoLayer) {
  add();
  auto transaction = bind_rows(2);
  ASSERT_TRUE(transaction.begin(0).ok());
  EXPECT_FALSE(*transaction.can_begin(0));
  ASSERT_TRUE(transaction.resolve(Rows{0, 0}).ok());
  EXPECT_EQ(calls(), Calls{});
  ASSERT_TRUE(transaction.begin(1).ok());
  EXPECT_EQ(calls(), Calls{"a begin"});
}

TEST_F(Rollback, R16_RowsThatAllAcceptEverythingCommit) {
  add();
  auto transaction = bind_rows(3);
  ASSERT_TRUE(transaction.begin(2).ok());
  ASSERT_TRUE(transaction.resolve(Rows{2, 2, 2}).ok());
  EXPECT_EQ(calls(), (Calls{"a begin", "a commit"}));

  auto none = bind_rows(0);  // "every" over no rows
  ASSERT_TRUE(none.begin(2).ok());
  ASSERT_TRUE(none.resolve(Rows{}).ok());
  EXPECT_EQ(calls(), (Calls{"a begin", "a commit"}));
}

TEST_F(Rollback, R17_RowsRollBackByOneNumberOrByAList) {
  add();
  auto transaction = bind_rows(3);
  const struct {
    Rows accepted;
    const char* call;
  } cases[] = {{{1, 1, 1}, "a keep 2"}, {{0, 0, 0}, "a keep 1"}, {{2, 0, 1}, "a keep [3,1,2]"}, {{2, 2, 1}, "a keep [3,3,2]"}};
  for (const auto& c : cases) {
    ASSERT_TRUE(transaction.begin(2).ok());
    ASSERT_TRUE(transaction.resolve(c.accepted).ok());
    EXPECT_EQ(calls(), (Calls{"a begin", c.call}));
  }
}

TEST_F(Rollback, R18_RowsNeedOneCountEachWithinTheDrafts) {
  add();
  auto transaction = bind_rows(2);
  ASSERT_TRUE(transaction.begin(2).ok());
  for (const Rows& accepted : {Rows{}, Rows{1}, Rows{1, 1, 1}, Rows{-1, 1}, Rows{1, 3}, Rows{INT64_MAX, 0}, Rows{0, INT64_MIN}})
    EXPECT_EQ(message(transaction.resolve(accepted)), kAcceptance) << testing::PrintToString(accepted);
  EXPECT_EQ(calls(), Calls{"a begin"});
  EXPECT_TRUE(transaction.resolve(Rows{2, 0}).ok());
}

TEST_F(Rollback, R19_WithoutLayersOnlyTheStateMachineRuns) {
  auto transaction = bind();
  EXPECT_TRUE(*transaction.can_begin(kDraftsMax));
  ASSERT_TRUE(transaction.begin(3).ok());
  EXPECT_EQ(message(transaction.begin(3)), kCannotBegin);
  EXPECT_EQ(message(transaction.resolve(4)), kAcceptance);
  EXPECT_TRUE(transaction.resolve(3).ok());
  EXPECT_EQ(message(transaction.resolve(3)), kAcceptance);
}

TEST_F(Rollback, R20_LayersOfDifferentKindsEachFollowTheirOwnWay) {
  add();
  add(RecordingLayer::kNone, true);
  RecordingLayer& ring = add(RecordingLayer::kNone, true);
  ring.capacity = 8;
  RecordingLayer& ring_with_rounds = add(RecordingLayer::kAll);
  ring_with_rounds.capacity = 8;
  auto transaction = bind();
  ASSERT_TRUE(transaction.begin(4).ok());
  ASSERT_TRUE(transaction.resolve(1).ok());
  EXPECT_EQ(calls(), (Calls{"a begin", "d begin", "a keep 2", "b trim 3", "c trim 3", "d keep 2"}));
  ring.tokens = 7;
  EXPECT_EQ(message(transaction.begin(0)), kCannotBegin);
}

}  // namespace
}  // namespace linnet
