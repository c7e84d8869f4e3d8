// Clauses P01-P12 of docs/contracts.md, one test for each, with a sampler that counts what it gives and what it gets back.
#include "exec/row_sampling.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace linnet {
namespace {

// Everything that happened, in order, and what is still held.
struct Ledger {
  std::vector<std::string> events;
  std::map<int, int> held;  // handle to how often it is held
  bool sample_fails = false;
  bool evaluate_fails = false;
  bool read_fails = false;
  bool releases_fail = false;
  bool without_extras = false;
  int next_handle = 1;

  int hold() {
    ++held[next_handle];
    return next_handle++;
  }
  void let_go(int handle) { EXPECT_EQ(--held[handle], 0) << "handle " << handle << " was not held exactly once"; }
  int held_now() const {
    int sum = 0;
    for (const auto& [handle, count] : held) sum += count;
    return sum;
  }
  int count(const std::string& event) const {
    int sum = 0;
    for (const std::string& seen : events) sum += seen == event ? 1 : 0;
    return sum;
  }
};

Error failure(const std::string& message) { return {ErrorCode::kInternal, message, ""}; }

class LedgerSampler {
 public:
  using Logits = int;  // what the token will be
  using Token = int;   // a handle
  struct Extras {
    int handle = 0;
    float logprob = 0;
  };

  LedgerSampler(std::shared_ptr<Ledger> ledger, bool captures, bool greedy)
      : ledger_(std::move(ledger)), captures_(captures), greedy_(greedy) {}

  bool captures_logprobs() const { return captures_; }
  bool plain_greedy() const { return greedy_; }
  Result<StepExtras<Token, Extras>> sample(Logits logits, std::uint64_t step) {
    ledger_->events.push_back("sample " + std::to_string(logits) + " at " + std::to_string(step));
    if (ledger_->sample_fails) return failure("the sampler failed");
    if (!captures_) return StepExtras<Token, Extras>{.token = logits, .extras = std::nullopt};
    StepExtras<Token, Extras> sampled{.token = ledger_->hold(), .extras = std::nullopt};
    if (!ledger_->without_extras) sampled.extras = Extras{.handle = ledger_->hold(), .logprob = static_cast<float>(-logits)};
    return sampled;
  }
  Status evaluate(const StepExtras<Token, Extras>& sampled) {
    ledger_->events.push_back(sampled.extras ? "evaluate both" : "evaluate token");
    if (ledger_->evaluate_fails) return failure("evaluating failed");
    ledger_->let_go(sampled.token);  // the group has it now
    return {};
  }
  Result<TokenLogprobs> read(Extras extras) {
    ledger_->let_go(extras.handle);
    if (ledger_->read_fails) return failure("reading failed");
    return TokenLogprobs{.logprob = extras.logprob};
  }
  Status release_token(Token token) { return released(token); }
  Status release_extras(Extras extras) { return released(extras.handle); }
  Status dispose() {
    ledger_->events.emplace_back("dispose");
    if (ledger_->releases_fail) return failure("disposing failed");
    return {};
  }

 private:
  Status released(int handle) {
    ledger_->let_go(handle);
    if (ledger_->releases_fail) return failure("releasing " + std::to_string(handle) + " failed");
    return {};
  }

  std::shared_ptr<Ledger> ledger_;
  bool captures_;
  bool greedy_;
};

struct Emitted {
  TokenId token{};
  std::optional<float> logprob;

  bool operator==(const Emitted&) const = default;
};

struct Rig {
  std::shared_ptr<Ledger> ledger = std::make_shared<Ledger>();
  std::shared_ptr<std::vector<Emitted>> out = std::make_shared<std::vector<Emitted>>();
  std::shared_ptr<SinkAnswer> answer = std::make_shared<SinkAnswer>(SinkAnswer::kContinue);

  auto make(bool captures, bool greedy = false, std::size_t ahead_max = 8) const {
    auto sink = [sunk = out, says = answer](TokenId token, const TokenLogprobs* logprobs) {
      sunk->push_back({.token = token, .logprob = logprobs ? std::optional(logprobs->logprob) : std::nullopt});
      return *says;
    };
    return create_row_sampling(LedgerSampler(ledger, captures, greedy), sink, ahead_max);
  }
};

TEST(RowSampling, P01_WithoutCaptureEverythingPassesThrough) {
  const Rig rig;
  for (const bool greedy : {false, true}) EXPECT_EQ(rig.make(false, greedy).plain_greedy(), greedy);
  auto row = rig.make(false);
  EXPECT_EQ(row.sample(7, 3).value(), 7);
  const TokenLogprobs handed{.logprob = -0.5F};
  EXPECT_EQ(row.on_token(TokenId{7}, &handed).value(), SinkAnswer::kContinue);
  EXPECT_TRUE(row.dispose().ok());
  EXPECT_EQ(*rig.out, (std::vector<Emitted>{{TokenId{7}, -0.5F}}));
  EXPECT_EQ(rig.ledger->events, (std::vector<std::string>{"sample 7 at 3", "dispose"}));
}

TEST(RowSampling, P02_WithCaptureARowIsNeverPlainGreedy) {
  const Rig rig;
  EXPECT_FALSE(rig.make(true, true).plain_greedy());
}

// Two rows change places in their group between steps: only each row's own steps count.
TEST(RowSampling, P03_CapturesAreKeptByTheRowsOwnStep) {
  const Rig one;
  const Rig two;
  auto first = one.make(true);
  auto second = two.make(true);
  ASSERT_TRUE(first.sample(10, 0).ok());
  ASSERT_TRUE(first.sample(11, 1).ok());
  ASSERT_TRUE(second.sample(20, 0).ok());
  ASSERT_TRUE(second.sample(21, 1).ok());
  ASSERT_TRUE(first.sample(12, 2).ok());
  for (const int token : {20, 21}) ASSERT_TRUE(second.on_token(TokenId{token}).ok());
  for (const int token : {10, 11, 12}) ASSERT_TRUE(first.on_token(TokenId{token}).ok());
  EXPECT_EQ(*one.out, (std::vector<Emitted>{{TokenId{10}, -10.0F}, {TokenId{11}, -11.0F}, {TokenId{12}, -12.0F}}));
  EXPECT_EQ(*two.out, (std::vector<Emitted>{{TokenId{20}, -20.0F}, {TokenId{21}, -21.0F}}));
}

TEST(RowSampling, P04_TokenAndCapturesAreEvaluatedInOneCall) {
  const Rig rig;
  auto row = rig.make(true);
  ASSERT_TRUE(row.sample(1, 0).ok());
  EXPECT_EQ(rig.ledger->events, (std::vector<std::string>{"sample 1 at 0", "evaluate both"}));
}

TEST(RowSampling, P05_AFailureAfterSamplingReleasesTokenAndCaptures) {
  for (const bool releases_fail : {false, true}) {
    const Rig rig;
    rig.ledger->evaluate_fails = true;
    rig.ledger->releases_fail = releases_fail;
    auto row = rig.make(true);
    const auto sampled = row.sample(1, 0);
    ASSERT_FALSE(sampled.ok());
    EXPECT_EQ(rig.ledger->held_now(), 0);
    EXPECT_EQ(sampled.error().message.find("evaluating failed"), 0U);
    for (const char* second : {"releasing 1 failed", "releasing 2 failed"}) {
      EXPECT_EQ(sampled.error().message.find(second) != std::string::npos, releases_fail) << sampled.error().message;
    }
    rig.ledger->releases_fail = false;
    EXPECT_TRUE(row.dispose().ok());
  }
}

TEST(RowSampling, P06_TheSamplersOwnFailurePassesUntouched) {
  for (const bool captures : {false, true}) {
    const Rig rig;
    rig.ledger->sample_fails = true;
    auto row = rig.make(captures);
    EXPECT_EQ(row.sample(1, 0).error(), failure("the sampler failed"));
    EXPECT_EQ(rig.ledger->events, (std::vector<std::string>{"sample 1 at 0"}));
  }
}

TEST(RowSampling, P07_EmissionKMeetsCaptureKAlsoWhenSampledAhead) {
  const Rig rig;
  auto row = rig.make(true);
  ASSERT_TRUE(row.sample(5, 0).ok());
  ASSERT_TRUE(row.sample(6, 1).ok());
  ASSERT_TRUE(row.on_token(TokenId{5}).ok());
  ASSERT_TRUE(row.sample(7, 2).ok());
  ASSERT_TRUE(row.on_token(TokenId{6}).ok());
  ASSERT_TRUE(row.on_token(TokenId{7}).ok());
  EXPECT_EQ(*rig.out, (std::vector<Emitted>{{TokenId{5}, -5.0F}, {TokenId{6}, -6.0F}, {TokenId{7}, -7.0F}}));
}

// A read that fails on token 0 must not shift the pairing of later tokens, and neither must a sink that asks for a stop.
TEST(RowSampling, P08_EntryAndCounterMoveBeforeTheSinkIsCalled) {
  const Rig rig;
  auto row = rig.make(true);
  for (const int step : {0, 1, 2}) ASSERT_TRUE(row.sample(step, static_cast<std::uint64_t>(step)).ok());
  rig.ledger->read_fails = true;
  EXPECT_EQ(row.on_token(TokenId{0}).error(), failure("reading failed"));
  rig.ledger->read_fails = false;
  *rig.answer = SinkAnswer::kStop;
  ASSERT_TRUE(row.on_token(TokenId{1}).ok());
  ASSERT_TRUE(row.on_token(TokenId{2}).ok());
  EXPECT_EQ(*rig.out, (std::vector<Emitted>{{TokenId{1}, -1.0F}, {TokenId{2}, -2.0F}}));
  EXPECT_EQ(rig.ledger->held_now(), 0);
}

TEST(RowSampling, P09_TheSinksAnswerIsReturned) {
  for (const bool captures : {false, true}) {
    const Rig rig;
    auto row = rig.make(captures);
    ASSERT_TRUE(row.sample(1, 0).ok());
    ASSERT_TRUE(row.sample(1, 1).ok());
    EXPECT_EQ(row.on_token(TokenId{1}).value(), SinkAnswer::kContinue);
    *rig.answer = SinkAnswer::kStop;
    EXPECT_EQ(row.on_token(TokenId{1}).value(), SinkAnswer::kStop);
  }
}

TEST(RowSampling, P10_DisposeReleasesEverythingOnceAndReportsAllFailures) {
  const Rig rig;
  auto row = rig.make(true);
  for (const int step : {0, 1, 2}) ASSERT_TRUE(row.sample(step, static_cast<std::uint64_t>(step)).ok());
  rig.ledger->releases_fail = true;
  const Status disposed = row.dispose();
  ASSERT_FALSE(disposed.ok());
  EXPECT_EQ(rig.ledger->held_now(), 0);
  for (const char* part : {"disposing failed", "releasing 2 failed", "releasing 4 failed", "releasing 6 failed"}) {
    EXPECT_NE(disposed.error().message.find(part), std::string::npos) << disposed.error().message;
  }
  EXPECT_TRUE(row.dispose().ok()) << "the second time there is nothing to do";
  EXPECT_EQ(rig.ledger->count("dispose"), 1);
}

TEST(RowSampling, P11_SamplesThatAreNeverEmittedAreReleased) {
  const Rig rig;
  auto row = rig.make(true);
  ASSERT_TRUE(row.sample(1, 0).ok());
  ASSERT_TRUE(row.on_token(TokenId{1}).ok());
  ASSERT_TRUE(row.sample(2, 1).ok());  // an end token
  ASSERT_TRUE(row.sample(3, 2).ok());  // looked ahead beyond it
  EXPECT_EQ(rig.ledger->held_now(), 2);
  EXPECT_TRUE(row.dispose().ok());
  EXPECT_EQ(rig.ledger->held_now(), 0);
  EXPECT_EQ(rig.out->size(), 1U);
}

TEST(RowSampling, P12_AMissingCaptureGivesNoLogprobs) {
  const Rig rig;
  auto row = rig.make(true);
  rig.ledger->without_extras = true;
  ASSERT_TRUE(row.sample(1, 0).ok());
  rig.ledger->without_extras = false;
  ASSERT_TRUE(row.sample(2, 1).ok());
  const TokenLogprobs ignored{.logprob = -0.5F};
  EXPECT_EQ(row.on_token(TokenId{1}, &ignored).value(), SinkAnswer::kContinue);
  EXPECT_EQ(row.on_token(TokenId{2}).value(), SinkAnswer::kContinue);
  EXPECT_EQ(*rig.out, (std::vector<Emitted>{{TokenId{1}, std::nullopt}, {TokenId{2}, -2.0F}}));
}

TEST(RowSampling, TheSameStepSampledTwiceKeepsTheLater) {
  const Rig rig;
  auto row = rig.make(true, false, 1);
  ASSERT_TRUE(row.sample(1, 0).ok());
  ASSERT_TRUE(row.sample(2, 0).ok());
  EXPECT_EQ(rig.ledger->held_now(), 1);
  ASSERT_TRUE(row.on_token(TokenId{2}).ok());
  EXPECT_EQ(*rig.out, (std::vector<Emitted>{{TokenId{2}, -2.0F}}));
}

}  // namespace
}  // namespace linnet
