// The engine on a thread of its own, with submitters, readers and leavers on others. Worth most under a thread sanitizer.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/doorbell.h"
#include "base/random.h"
#include "engine/engine_rig.h"

namespace linnet {
namespace {

constexpr int kThreads = 4;

std::unique_ptr<Executor> executor() {
  FakeExecutorOptions fake;
  fake.info.block_tokens = 8;
  fake.info.block_count = 64;
  fake.info.context_max = 128;
  return std::make_unique<FakeExecutor>(fake);
}

Answer read_blocking(RequestHandle& handle) {
  Answer answer;
  while (!answer.finish) {
    Event event = handle.next();
    if (const auto* token = std::get_if<TokenEvent>(&event)) {
      answer.tokens.push_back(token->token);
    } else {
      answer.finish = std::get<FinishEvent>(std::move(event));
    }
  }
  return answer;
}

// As an event loop does: on_ready posts, the loop reads what there is.
Answer read_when_ready(RequestHandle& handle) {
  Answer answer;
  const auto doorbell = std::make_shared<Doorbell>();
  handle.on_ready([doorbell] { doorbell->ring(); });
  while (!answer.finish) {
    doorbell->wait();
    read_available(handle, answer);
  }
  return answer;
}

TEST(EngineThreads, WatchersCopyWhatTheEngineRecords) {
  SystemClock clock;
  Engine engine({}, executor(), clock);
  engine.start();
  std::atomic<bool> done = false;
  std::thread watcher([&] {
    while (!done) {
      const std::vector<StepRecord> steps = engine.recent_steps();
      for (std::size_t i = 1; i < steps.size(); ++i) ASSERT_EQ(steps[i].number, steps[i - 1].number + 1);
      ASSERT_LE(engine.stats().ttft.count(), 50U);
      (void)engine.trace("watched");
    }
  });
  for (std::int32_t i = 0; i < 50; ++i) {
    RequestHandle handle = engine.submit({.prompt = prompt_of(20, i), .max_tokens = 8, .trace_id = "watched"}).value();
    read_blocking(handle);
  }
  engine.stop();
  done = true;
  watcher.join();
  const std::optional<RequestTrace> trace = engine.trace("watched");
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->spans.front().kind, TraceKind::kQueued);
  EXPECT_EQ(engine.stats().ttft.count(), 50U);
  EXPECT_EQ(engine.stats().inter_token.count(), 50U * 7);
}

// What the cache had is a matter of timing; the answer is not.
Answer uncached(Answer answer) {
  answer.finish->usage.cached_tokens = 0;
  return answer;
}

TEST(EngineThreads, ManySubmittersReadersAndLeavers) {
  SystemClock clock;
  const ExecutorInfo info = executor()->info();
  Engine engine({.max_rows = 4, .max_waiting = 1000, .outbox_events_max = 2}, executor(), clock);
  engine.start();
  std::atomic<int> submitted = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Rng rng(static_cast<std::uint64_t>(thread));
      for (int round = 0; round < 60; ++round) {
        const Request request{.prompt = prompt_of(static_cast<std::int32_t>(1 + rng.below(60)), round),
                              .sampling = {.seed = rng.bits()},
                              .max_tokens = static_cast<std::int32_t>(rng.below(30))};
        RequestHandle handle = engine.submit(request).value();
        ++submitted;
        switch (rng.below(4)) {
          case 0:
            EXPECT_EQ(uncached(read_blocking(handle)), lone_answer(request, info));
            break;
          case 1:
            EXPECT_EQ(uncached(read_when_ready(handle)), lone_answer(request, info));
            break;
          case 2: {
            handle.cancel();
            const Answer answer = read_blocking(handle);
            if (answer.finish->reason != FinishReason::kCancelled) {
              EXPECT_EQ(uncached(answer), lone_answer(request, info));
            }
            break;
          }
          default:
            break;  // leaves without reading
        }
        engine.stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine.stop();
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.requests_finished, static_cast<std::uint64_t>(submitted.load()));
  EXPECT_EQ(stats.kv_blocks_used, stats.cache_blocks);
  EXPECT_EQ(stats.requests_waiting, 0);
}

TEST(EngineThreads, StopWhileBusyEndsEveryRequest) {
  for (int round = 0; round < 20; ++round) {
    SystemClock clock;
    auto engine = std::make_unique<Engine>(EngineOptions{.max_rows = 2, .max_waiting = 100}, executor(), clock);
    engine->start();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&engine] {
        for (int index = 0; index < 20; ++index) {
          Result<RequestHandle> handle = engine->submit({.prompt = prompt_of(30), .max_tokens = 90});
          if (!handle.ok()) {
            EXPECT_EQ(handle.error().code, ErrorCode::kUnavailable);
            continue;
          }
          const FinishEvent finish = *read_blocking(*handle).finish;
          EXPECT_TRUE(finish.reason == FinishReason::kLength || finish.error->code == ErrorCode::kUnavailable);
        }
      });
    }
    while (engine->stats().steps < static_cast<std::uint64_t>(10 * round)) std::this_thread::yield();
    engine->stop();
    for (std::thread& thread : threads) thread.join();
    engine.reset();
  }
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(EngineThreads, AnIdleEngineUsesNoProcessorTime) {
  SystemClock clock;
  Engine engine({.outbox_events_max = 2}, executor(), clock);
  engine.start();
  // Paused by a reader that reads nothing, and otherwise idle.
  RequestHandle paused = engine.submit({.prompt = prompt_of(3), .max_tokens = 20}).value();
  while (engine.stats().completion_tokens < 2) std::this_thread::yield();
  const double before = cpu_seconds();
  std::promise<void> never;
  never.get_future().wait_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_seconds() - before, 0.02);
  EXPECT_EQ(read_blocking(paused).tokens.size(), 20U) << "reading wakes it";
}

}  // namespace
}  // namespace linnet
