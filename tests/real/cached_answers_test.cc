// On the real demo model: an answer that begins with cached KV has the bits of a cold one, ids and logprobs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "demo_model.h"
#include "golden_answers.h"
#include "linnet/engine.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace linnet {
namespace {

constexpr std::int32_t kPrompt = 170;  // five whole blocks and a part of one
constexpr std::int32_t kGenerate = 20;

struct Heard {
  std::vector<TokenId> tokens;
  std::vector<TokenLogprobs> logprobs;
  std::int32_t cached = 0;

  bool operator==(const Heard&) const = default;
};

std::vector<TokenId> text_of(std::int32_t count) {
  std::vector<TokenId> text;
  for (std::size_t turn = 0; static_cast<std::int32_t>(text.size()) < count; ++turn) {
    for (const GoldenAnswer& golden : read_golden_answers()) text.insert(text.end(), golden.answer.begin(), golden.answer.end());
  }
  text.resize(static_cast<std::size_t>(count));
  return text;
}

class CachedAnswers : public testing::Test {
 protected:
  CachedAnswers() : engine_({.max_rows = 8}, load_demo_executor(2), clock_) {}

  // All at once; what each was answered.
  std::vector<Heard> ask(const std::vector<Request>& requests) {
    std::vector<RequestHandle> handles;
    for (const Request& request : requests) {
      std::vector<RequestHandle> choices = engine_.submit_choices(request).value();
      std::move(choices.begin(), choices.end(), std::back_inserter(handles));
    }
    while (engine_.step()) {
    }
    std::vector<Heard> heard;
    for (RequestHandle& handle : handles) heard.push_back(read(handle));
    return heard;
  }

  // Leaves the KV of exactly these tokens in the cache.
  void leave(const std::vector<TokenId>& tokens, const std::string& scope) {
    ask({{.prompt = tokens, .sampling = {.temperature = 0}, .max_tokens = 1, .cache_scope = scope}});
  }

  static Heard read(RequestHandle& handle) {
    Heard heard;
    while (true) {
      const Event event = handle.next();
      if (const auto* finish = std::get_if<FinishEvent>(&event)) {
        EXPECT_TRUE(finish->reason == FinishReason::kLength || finish->reason == FinishReason::kStop);
        heard.cached = finish->usage.cached_tokens;
        return heard;
      }
      const auto& token = std::get<TokenEvent>(event);
      heard.tokens.push_back(token.token);
      heard.logprobs.push_back(*token.logprobs);
    }
  }

  // Greedy; sampled with penalties; held to a grammar.
  std::vector<Request> three_ways(const std::vector<TokenId>& prompt) {
    const Request greedy{
        .prompt = prompt, .sampling = {.temperature = 0, .logprobs = 5}, .max_tokens = kGenerate, .ignore_eos = true};
    Request sampled = greedy;
    sampled.sampling = {.temperature = 0.9F,
                        .top_p = 0.95F,
                        .seed = 7,
                        .repetition_penalty = 1.2F,
                        .repetition_context = 64,
                        .frequency_penalty = 0.4F,
                        .frequency_context = 200,
                        .logprobs = 5};
    Request held = sampled;
    held.grammar = grammar_;
    held.sampling.seed = 8;
    return {greedy, sampled, held};
  }

  void SetUp() override {
    const Tokenizer tokenizer = load_demo_tokenizer();
    Result<Grammar> grammar = Grammar::compile(tokenizer, GrammarKind::kRegex, "[a-z ,]{8,400}");
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    grammar_ = std::make_shared<const Grammar>(*std::move(grammar));
    prompt_ = text_of(kPrompt);
    for (Request request : three_ways(prompt_)) {
      request.prompt_cache = false;
      const std::vector<Heard> heard = ask({request});
      cold_.push_back(heard.front());
      ASSERT_EQ(cold_.back().cached, 0);
    }
    ASSERT_NE(cold_[0].tokens, cold_[1].tokens);
  }

  void expect_cold(std::vector<Heard> heard, const std::vector<std::int32_t>& cached, const std::string& what) {
    ASSERT_EQ(heard.size(), cold_.size());
    for (std::size_t way = 0; way < heard.size(); ++way) {
      EXPECT_EQ(heard[way].cached, cached[way]) << what << ", way " << way;
      heard[way].cached = 0;
      EXPECT_TRUE(heard[way] == cold_[way]) << what << ", way " << way;
    }
  }

  SystemClock clock_;
  Engine engine_;
  std::shared_ptr<const Grammar> grammar_;
  std::vector<TokenId> prompt_;
  std::vector<Heard> cold_;  // of each way
};

TEST_F(CachedAnswers, EqualColdOnesFromEveryBlocksEnd) {
  for (std::int32_t end = 32; end < kPrompt; end += 32) {
    for (const std::int32_t cached : {end - 1, end, end + 1}) {
      const std::string scope = std::to_string(cached);
      leave({prompt_.begin(), prompt_.begin() + cached}, scope);
      // One after another, so that each finds what was left and no more.
      for (std::size_t way = 0; way < cold_.size(); ++way) {
        Request request = three_ways(prompt_)[way];
        request.cache_scope = scope + "-" + std::to_string(way);
        leave({prompt_.begin(), prompt_.begin() + cached}, request.cache_scope);
        Heard heard = ask({request}).front();
        EXPECT_EQ(heard.cached, cached);
        heard.cached = 0;
        EXPECT_TRUE(heard == cold_[way]) << cached << " tokens cached, way " << way;
      }
    }
  }
}

TEST_F(CachedAnswers, EqualColdOnesWhereAnotherConversationBranchesOff) {
  std::vector<TokenId> other(prompt_.begin(), prompt_.begin() + 77);
  other.push_back(prompt_[78]);
  other.insert(other.end(), prompt_.begin(), prompt_.begin() + 60);
  leave(other, "");
  // The second and the third share with the first as it goes.
  expect_cold(ask(three_ways(prompt_)), {77, kPrompt - 1, kPrompt - 1}, "a branch");
}

TEST_F(CachedAnswers, EqualColdOnesAsAWholeHitAndTogether) {
  ask(three_ways(prompt_));
  expect_cold(ask(three_ways(prompt_)), {kPrompt - 1, kPrompt - 1, kPrompt - 1}, "a whole hit");
}

TEST_F(CachedAnswers, SeveralChoicesEqualColdOnes) {
  Request request = three_ways(prompt_)[1];
  request.choices = 3;
  request.prompt_cache = false;
  std::vector<Heard> cold = ask({request});
  request.prompt_cache = true;
  leave({prompt_.begin(), prompt_.begin() + 101}, "");
  std::vector<Heard> hit = ask({request});
  EXPECT_EQ(hit[0].cached, 101);
  for (std::size_t choice = 0; choice < 3; ++choice) {
    hit[choice].cached = cold[choice].cached;
    EXPECT_TRUE(hit[choice] == cold[choice]) << choice;
  }
}

// The next turn begins with what the last one said, too.
TEST_F(CachedAnswers, TheNextTurnEqualsAColdOne) {
  const std::vector<TokenId> said = ask({three_ways(prompt_)[1]}).front().tokens;
  std::vector<TokenId> turn = prompt_;
  turn.insert(turn.end(), said.begin(), said.end());
  turn.insert(turn.end(), prompt_.begin(), prompt_.begin() + 40);
  Request request = three_ways(turn)[0];
  request.prompt_cache = false;
  Heard cold = ask({request}).front();
  request.prompt_cache = true;
  Heard hit = ask({request}).front();
  EXPECT_EQ(hit.cached, kPrompt + kGenerate - 1);
  hit.cached = 0;
  EXPECT_TRUE(hit == cold);
}

TEST_F(CachedAnswers, EqualColdOnesAfterEviction) {
  Engine small({.prompt_cache_bytes = std::uint64_t{12} << 20U}, load_demo_executor(2), clock_);  // 17 blocks
  const Request greedy = three_ways(prompt_)[0];
  const auto ask_small = [&](const Request& request) {
    RequestHandle handle = small.submit(request).value();
    while (small.step()) {
    }
    return read(handle);
  };
  ask_small(greedy);
  Request filler = greedy;
  filler.prompt.assign(prompt_.rbegin(), prompt_.rend());
  for (int turn = 0; turn < 3; ++turn) {
    filler.prompt.insert(filler.prompt.begin(), prompt_[static_cast<std::size_t>(turn)]);
    ask_small(filler);
  }
  ASSERT_GT(small.stats().cache_blocks_evicted, 6U);
  Heard after = ask_small(greedy);
  EXPECT_LT(after.cached, kPrompt - 1);
  after.cached = 0;
  EXPECT_TRUE(after == cold_[0]);
}

}  // namespace
}  // namespace linnet
