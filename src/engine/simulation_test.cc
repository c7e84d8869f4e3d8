// The whole engine on virtual time under seeded chaos: arrivals, cancels, slow readers, leavers,
// several answers to a prompt, conversations that branch and return, deadlines, clock jumps, tiny pools, a failing executor.
// LINNET_SIMULATION_SEED=<n> runs one seed; LINNET_SIMULATION_SEEDS=<n> that many.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/random.h"
#include "engine/engine_rig.h"

namespace linnet {
namespace {

constexpr std::uint64_t kSeeds = 1000;
constexpr int kTurns = 250;
constexpr std::int32_t kVocabulary = 60;

struct World {
  EngineOptions options;
  FakeExecutorOptions fake;
  double arrivals;  // chance of a submission in a turn
  bool orderly;     // everyone reads everything at once, and no priorities: waiting is bounded
  bool failures;
};

World world_of(Rng& rng) {
  World world{.options = {},
              .fake = {},
              .arrivals = 0.05 + 0.05 * static_cast<double>(rng.below(10)),
              .orderly = rng.chance(0.4),
              .failures = rng.chance(0.3)};
  world.options.max_rows = static_cast<std::int32_t>(1 + rng.below(6));
  world.options.max_waiting = static_cast<std::int32_t>(1 + rng.below(8));
  world.options.max_gap_ms = static_cast<std::int32_t>(1 + rng.below(60));
  world.options.prompt_cache_bytes = 0;
  world.options.outbox_events_max = static_cast<std::int32_t>(1 + rng.below(12));
  ExecutorInfo& info = world.fake.info;
  info.vocabulary = kVocabulary;
  if (rng.chance(0.7)) world.options.prompt_cache_bytes = rng.chance(0.5) ? kWholeCache : rng.below(40) * info.block_bytes;
  info.block_tokens = std::int32_t{1} << rng.below(5);
  info.block_count = static_cast<std::int32_t>(3 + rng.below(static_cast<std::uint64_t>(600 / info.block_tokens)));
  info.context_max = static_cast<std::int32_t>(8 + rng.below(150));
  info.step_tokens_max = static_cast<std::int32_t>(1 + rng.below(60));
  info.step_rows_max = static_cast<std::int32_t>(1 + rng.below(8));
  info.overlaps = rng.chance(0.5);
  if (info.overlaps) ++world.options.outbox_events_max;  // one token on its way, one made meanwhile
  world.fake.cost_ratio = 0.5 + static_cast<double>(rng.below(30)) / 10;
  return world;
}

// One consumer, with habits of its own.
struct Client {
  Request request;
  std::int32_t choice = 0;  // which of its sequences
  Clock::Duration deadline = Clock::Duration::max();
  Answer expected;
  RequestHandle handle;
  Answer answer;
  std::uint64_t number = 0;  // of its request
  double diligence = 1;      // chance that it reads in a turn
  bool waits_for_ready = false;
  bool ready = false;
  bool cancelled = false;
  bool satisfied = false;
  std::uint64_t steps_left = 0;  // in an orderly world it must be served within these
};

// A request's prompt and answer.
struct Said {
  std::uint64_t number = 0;
  std::string scope;
  std::vector<TokenId> tokens;
};

class Simulation {
 public:
  explicit Simulation(std::uint64_t seed) : rng_(seed), world_(world_of(rng_)), rig_(world_.options, world_.fake) {}

  void run() {
    for (int turn = 0; turn < kTurns && !testing::Test::HasFatalFailure(); ++turn) {
      if (rng_.chance(world_.arrivals)) arrive();
      if (rng_.chance(0.03)) withdraw();
      if (world_.failures && rng_.chance(0.01)) rig_.executor().fail_collect(rng_.below(5));
      if (world_.failures && rng_.chance(0.02)) rig_.executor().fail_row(rng_.below(10));
      if (rng_.chance(0.02)) rig_.clock().advance(std::chrono::milliseconds(rng_.below(200)));
      step();
      read(/*everything=*/world_.orderly);
    }
    drain();
  }
  std::uint64_t steps() const { return steps_; }

 private:
  std::int32_t tokens_at_most(const Request& request) const {
    const std::int32_t context = std::min(rig_.info().context_max, rig_.info().block_count * rig_.info().block_tokens);
    const auto prompt = static_cast<std::int32_t>(request.prompt.size());
    return std::min(prompt + request.max_tokens.value_or(context), context);
  }

  // Something new, or a conversation that goes on, perhaps from somewhere in its middle.
  std::vector<TokenId> random_prompt() {
    std::vector<TokenId> prompt;
    const std::uint64_t longest = rng_.chance(0.3) ? static_cast<std::uint64_t>(rig_.info().context_max) : 20;
    if (!said_.empty() && rng_.chance(0.6)) {
      prompt = said_[rng_.below(said_.size())].tokens;
      if (rng_.chance(0.4)) prompt.resize(rng_.below(prompt.size()));
    }
    for (std::uint64_t more = 1 + rng_.below(longest); more-- > 0;) prompt.push_back(TokenId(rng_.below(kVocabulary)));
    return prompt;
  }

  Request random_request() {
    Request request;
    request.prompt = random_prompt();
    request.prompt_cache = rng_.chance(0.9);
    if (rng_.chance(0.1)) request.cache_scope = "another";
    if (rng_.chance(0.3)) request.session = "returns";
    if (rng_.chance(0.5)) request.sampling.temperature = 0;
    request.sampling.seed = rng_.below(3);
    if (rng_.chance(0.9)) request.max_tokens = static_cast<std::int32_t>(rng_.below(25));
    if (rng_.chance(0.5)) request.end_tokens = {TokenId{3}, TokenId{17}};
    request.ignore_eos = rng_.chance(0.1);
    if (rng_.chance(0.2)) request.choices = static_cast<std::int32_t>(2 + rng_.below(3));
    if (rng_.chance(0.2)) request.sampling.logprobs = static_cast<std::int32_t>(rng_.below(4));
    if (rng_.chance(0.1)) request.time_limit = std::chrono::milliseconds(rng_.below(300));
    if (!world_.orderly) request.priority = static_cast<std::int32_t>(rng_.below(3)) - 1;
    return request;
  }

  void arrive() {
    const Request request = random_request();
    Result<std::vector<RequestHandle>> handles = rig_.engine().submit_choices(request);
    if (!handles.ok()) {
      const bool too_long = handles.error().code == ErrorCode::kContextLengthExceeded;
      ASSERT_TRUE(too_long || handles.error().code == ErrorCode::kQueueFull) << handles.error().message;
      const auto needed = static_cast<std::int32_t>(request.prompt.size()) + (request.max_tokens == 0 ? 0 : 1);
      if (request.choices > 1) return;
      ASSERT_EQ(too_long, needed > tokens_at_most({.prompt = {TokenId{0}}, .max_tokens = std::nullopt}));
      return;
    }
    ++submitted_;
    for (std::int32_t choice = 0; choice < request.choices; ++choice) {
      add_client(request, choice, std::move((*handles)[static_cast<std::size_t>(choice)]));
    }
    // In each step the first of those that were there before it moves by a token at least, and so does it once it is the first.
    std::uint64_t work = 2;
    for (const auto& open : clients_) work += static_cast<std::uint64_t>(tokens_at_most(open->request)) + 1;
    for (auto client = clients_.end() - request.choices; client != clients_.end(); ++client) (*client)->steps_left = work;
  }

  void add_client(const Request& request, std::int32_t choice, RequestHandle handle) {
    auto client = std::make_unique<Client>();
    client->request = request;
    client->choice = choice;
    client->handle = std::move(handle);
    client->expected = lone_answer(request, rig_.info(), choice);
    if (request.time_limit) client->deadline = rig_.clock().now() + *request.time_limit;
    if (rng_.chance(0.3)) client->diligence = static_cast<double>(rng_.below(100)) / 100;
    if (rng_.chance(0.3)) {
      client->waits_for_ready = true;
      client->handle.on_ready([told = client.get()] { told->ready = true; });
    }
    client->number = submitted_;
    Said said{.number = submitted_, .scope = request.cache_scope, .tokens = request.prompt};
    said.tokens.insert(said.tokens.end(), client->expected.tokens.begin(), client->expected.tokens.end());
    said_.push_back(std::move(said));
    clients_.push_back(std::move(client));
  }

  // Nothing else can be found in a cache.
  std::int32_t most_in_common(const Client& client) const {
    const Request& request = client.request;
    std::ptrdiff_t most = 0;
    for (const Said& said : said_) {
      if (said.scope != request.cache_scope || said.number == client.number) continue;
      const auto differs =
          std::mismatch(request.prompt.begin(), request.prompt.end() - 1, said.tokens.begin(), said.tokens.end());
      most = std::max(most, differs.first - request.prompt.begin());
    }
    return static_cast<std::int32_t>(most);
  }

  void withdraw() {
    if (clients_.empty()) return;
    const std::size_t index = rng_.below(clients_.size());
    Client& client = *clients_[index];
    if (rng_.chance(0.3)) {
      client.handle.stop();
      client.satisfied = !client.cancelled;
    } else if (rng_.chance(0.5)) {
      client.handle.cancel();
      client.cancelled = !client.satisfied;
    } else {
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }

  void step() {
    const Clock::Duration before = rig_.clock().now();
    const bool ran = rig_.engine().step();
    steps_ += ran ? 1 : 0;
    const EngineStats stats = rig_.engine().stats();
    ASSERT_LE(stats.kv_blocks_used, stats.kv_blocks_total);
    ASSERT_LE(stats.cache_blocks, stats.kv_blocks_used);
    ASSERT_LE(static_cast<std::uint64_t>(stats.cache_blocks) * rig_.info().block_bytes, *world_.options.prompt_cache_bytes);
    ASSERT_GE(stats.kv_blocks_used, stats.rows_running);
    ASSERT_GE(stats.rows_running, stats.requests_running);
    if (stats.rows_running == 0) {
      ASSERT_EQ(stats.kv_blocks_used, stats.cache_blocks) << "leaked blocks";
    }
    const auto open = static_cast<std::uint64_t>(stats.requests_running + stats.requests_waiting);
    ASSERT_EQ(submitted_, stats.requests_finished + open) << "a request was lost";
    for (const auto& client : clients_) {
      if (!client->cancelled && !client->satisfied && before < client->deadline) continue;
      read_available(client->handle, client->answer);
      ASSERT_TRUE(client->answer.finish) << "a request that was withdrawn, or late, outlived a step";
    }
    if (!world_.orderly) return;
    for (const auto& client : clients_) ASSERT_GT(client->steps_left--, 0U) << "starved";
  }

  void read(bool everything) {
    for (const auto& client : clients_) {
      if (!everything && !rng_.chance(client->diligence)) continue;
      if (client->waits_for_ready && !std::exchange(client->ready, false)) continue;
      read_available(client->handle, client->answer);
    }
    for (std::size_t index = clients_.size(); index-- > 0;) {
      if (!clients_[index]->answer.finish) continue;
      check(*clients_[index]);
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }

  void check(Client& client) {
    ASSERT_FALSE(client.handle.try_next().has_value()) << "an event after the final one";
    const FinishEvent& finish = *client.answer.finish;
    const std::int32_t prompt = finish.usage.prompt_tokens;
    const std::int32_t cached = finish.usage.cached_tokens;
    if (world_.options.prompt_cache_bytes == 0 || !client.request.prompt_cache) {
      ASSERT_TRUE(cached == 0 || (client.choice > 0 && cached == prompt - 1));
    }
    ASSERT_TRUE((cached >= 0 && cached <= most_in_common(client)) || (client.choice > 0 && cached == prompt - 1));
    client.expected.finish->usage.cached_tokens = cached;
    if (client.answer == client.expected) return;
    switch (finish.reason) {
      case FinishReason::kLength:
        FAIL() << "differs from the lone run";
      case FinishReason::kStop:
        ASSERT_TRUE(client.satisfied) << "differs from the lone run";
        break;
      case FinishReason::kCancelled:
        ASSERT_TRUE(client.cancelled);
        break;
      case FinishReason::kError:
        ASSERT_TRUE(world_.failures ||
                    (finish.error->code == ErrorCode::kDeadlineExceeded && rig_.clock().now() >= client.deadline));
        break;
    }
    const Answer& answer = client.answer;
    const Answer& expected = client.expected;
    ASSERT_LE(answer.tokens.size(), expected.tokens.size());
    ASSERT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(), expected.tokens.begin())) << "differs from the lone run";
    ASSERT_TRUE(std::equal(answer.logprobs.begin(), answer.logprobs.end(), expected.logprobs.begin()));
    ASSERT_EQ(finish.usage.completion_tokens, static_cast<std::int32_t>(answer.tokens.size()));
  }

  // Arrivals end and everyone reads: all is served, within the steps that the work needs at most.
  void drain() {
    if (testing::Test::HasFatalFailure()) return;
    std::int32_t work = 2;
    for (const auto& client : clients_) work += tokens_at_most(client->request) + 1;
    for (const auto& client : clients_) client->steps_left = static_cast<std::uint64_t>(work);
    while (!clients_.empty() && !testing::Test::HasFatalFailure()) {
      ASSERT_GE(work--, 0) << clients_.size() << " requests are stuck";
      read(true);
      step();
    }
    ASSERT_FALSE(rig_.engine().step());
    ASSERT_EQ(rig_.engine().stats().kv_blocks_used, rig_.engine().stats().cache_blocks);
    ASSERT_EQ(rig_.engine().stats().requests_finished, submitted_);
  }

  Rng rng_;
  World world_;
  EngineRig rig_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Said> said_;  // of every request
  std::uint64_t submitted_ = 0;
  std::uint64_t steps_ = 0;
};

// A failed CHECK aborts: its seed must be known then, too.
volatile std::sig_atomic_t seed_under_way = 0;

void print_seed(int) {
  char line[96];
  const int length =
      std::snprintf(line, sizeof line, "replay: LINNET_SIMULATION_SEED=%ld linnet_engine_test --gtest_filter='Simulation.*'\n",
                    static_cast<long>(seed_under_way));
  if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) _exit(1);
}

std::optional<std::uint64_t> number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

TEST(Simulation, EveryRequestIsServedAsIfAlone) {
  const std::optional<std::uint64_t> only = number_from("LINNET_SIMULATION_SEED");
  const std::uint64_t first = only.value_or(0);
  const std::uint64_t last = only ? *only + 1 : number_from("LINNET_SIMULATION_SEEDS").value_or(kSeeds);
  set_log_level(LogLevel::kOff);  // injected failures
  auto* const before = std::signal(SIGABRT, print_seed);
  std::uint64_t steps = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < last; ++seed) {
    seed_under_way = static_cast<std::sig_atomic_t>(seed);
    Simulation simulation(seed);
    simulation.run();
    steps += simulation.steps();
    if (HasFatalFailure()) {
      print_seed(SIGABRT);
      break;
    }
  }
  std::signal(SIGABRT, before);
  set_log_level(LogLevel::kInfo);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%llu steps, %.0f a second\n", static_cast<unsigned long long>(steps), static_cast<double>(steps) / took.count());
}

}  // namespace
}  // namespace linnet
