#include "backends/cpu/pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "backends/cpu/affinity.h"
#include "base/clock.h"

namespace linnet::cpu {
namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int allowed_here() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  EXPECT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  return CPU_COUNT(&mask);
}

// Waits without sleeping and without reading the clock itself, so that helpers reach their sleep.
void let_pass(std::chrono::nanoseconds time) {
  const SystemClock clock;
  const auto until = clock.now() + time;
  while (clock.now() < until) std::this_thread::yield();
}

class PoolOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Pool, PoolOf, testing::Values(1, 2, 3, 4));

TEST_P(PoolOf, RunsATaskOnceOnEveryThread) {
  Pool pool({.threads = GetParam()});
  ASSERT_EQ(pool.threads(), GetParam());
  std::vector<int> runs(static_cast<std::size_t>(GetParam()));
  const std::thread::id caller = std::this_thread::get_id();
  pool.run([&](int thread, int threads) {
    ASSERT_EQ(threads, GetParam());
    ASSERT_EQ(thread == 0, std::this_thread::get_id() == caller);
    ++runs[static_cast<std::size_t>(thread)];
  });
  EXPECT_EQ(runs, std::vector<int>(static_cast<std::size_t>(GetParam()), 1));
}

// Each run reads what all threads wrote in the run before: an early return or a lost task shows as a wrong sum, a missing barrier
// as a race under ThreadSanitizer.
TEST_P(PoolOf, ManyRunsInStepsSeeEachOthersResults) {
  Pool pool({.threads = GetParam()});
  const auto n = static_cast<std::size_t>(pool.threads());
  std::vector<std::int64_t> from(n, 1);
  std::vector<std::int64_t> to(n, 0);
  const std::int64_t total = GetParam() <= 2 ? 100'000 : 5'000;
  std::int64_t runs = 0;
  while (runs < total) {
    pool.begin_step();
    for (int i = 0; i < 1000 && runs < total; ++i, ++runs) {
      pool.run([&](int thread, int) {
        std::int64_t sum = 0;
        for (const std::int64_t value : from) sum += value;
        to[static_cast<std::size_t>(thread)] = sum % 1'000'003 + thread;
      });
      std::swap(from, to);
    }
    pool.end_step();
  }
  std::vector<std::int64_t> expected(n, 1);
  for (std::int64_t i = 0; i < total; ++i) {
    std::int64_t sum = 0;
    for (const std::int64_t value : expected) sum += value;
    for (std::size_t t = 0; t < n; ++t) expected[t] = sum % 1'000'003 + static_cast<std::int64_t>(t);
  }
  EXPECT_EQ(from, expected);
}

TEST_P(PoolOf, WakesAfterEverySleep) {
  Pool pool({.threads = GetParam()});
  std::atomic<int> runs{0};
  const auto count = [&](int, int) { runs.fetch_add(1, std::memory_order_relaxed); };
  for (int i = 0; i < 30; ++i) {
    pool.begin_step();
    if (i % 3 == 1) let_pass(std::chrono::microseconds(1500));  // helpers give up spinning inside the step
    pool.run(count);
    pool.run(count);
    pool.end_step();
    if (i % 3 == 0) let_pass(std::chrono::microseconds(300));
    pool.run(count);  // outside a step
    pool.begin_step();
    pool.end_step();  // a step without work
  }
  EXPECT_EQ(runs.load(), 90 * GetParam());
}

// Whoever takes part, each piece is done once and seen by the next task; a helper that comes late finds the door closed.
TEST_P(PoolOf, DealsEveryPieceOnceWhoeverIsThere) {
  Pool pool({.threads = GetParam()});
  std::vector<std::int64_t> from(7, 1);
  std::vector<std::int64_t> to(7, 0);
  std::vector<std::int64_t> expected(7, 1);
  const int total = GetParam() <= 2 ? 20'000 : 3'000;
  for (int i = 0; i < total; ++i) {
    if (i % 500 == 0) pool.begin_step();
    if (i % 700 == 9) let_pass(std::chrono::microseconds(1500));  // helpers fall asleep and miss tasks
    const std::int64_t count = i % 8;
    pool.deal(count, [&](int thread, WorkQueue& pieces) {
      ASSERT_TRUE(thread >= 0 && thread < GetParam());
      for (std::int64_t p = 0, end = 0; pieces.take(p, end);) {
        std::int64_t sum = p;
        for (const std::int64_t value : from) sum += value;
        to[static_cast<std::size_t>(p)] = sum % 1'000'003;
      }
    });
    std::vector<std::int64_t> next = expected;
    for (std::int64_t p = 0; p < count; ++p) {
      std::int64_t sum = p;
      for (const std::int64_t value : expected) sum += value;
      next[static_cast<std::size_t>(p)] = sum % 1'000'003;
    }
    expected = next;
    from = to = [&] {
      std::vector<std::int64_t> merged = from;
      std::copy(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(count), merged.begin());
      return merged;
    }();
    ASSERT_EQ(from, expected) << i;
    if (i % 500 == 499) pool.end_step();
  }
}

TEST_P(PoolOf, RunStillMeansEveryThreadAmongDeals) {
  Pool pool({.threads = GetParam()});
  std::atomic<std::int64_t> runs{0};
  std::atomic<std::int64_t> pieces_done{0};
  pool.begin_step();
  for (int i = 0; i < 2000; ++i) {
    pool.deal(5, [&](int, WorkQueue& pieces) {
      for (std::int64_t p = 0, end = 0; pieces.take(p, end);) pieces_done.fetch_add(1, std::memory_order_relaxed);
    });
    if (i % 50 == 0) pool.run([&](int, int) { runs.fetch_add(1, std::memory_order_relaxed); });
  }
  pool.end_step();
  EXPECT_EQ(pieces_done.load(), 10'000);
  EXPECT_EQ(runs.load(), 40 * GetParam());
}

TEST_P(PoolOf, SubnormalsCountAsZeroInTasksOnly) {
  Pool pool({.threads = GetParam()});
  const auto tiny_product = [] {
    volatile float tiny = std::numeric_limits<float>::min();
    return tiny * 0.5F;
  };
  std::vector<float> products(static_cast<std::size_t>(GetParam()), 1.0F);
  const auto task = [&](int thread, int) { products[static_cast<std::size_t>(thread)] = tiny_product(); };
  pool.run(task);
#if defined(__x86_64__)
  EXPECT_EQ(products, std::vector<float>(products.size(), 0.0F));
#endif
  EXPECT_GT(tiny_product(), 0.0F);
  pool.begin_step();
  pool.run(task);
  pool.end_step();
  EXPECT_GT(tiny_product(), 0.0F);
}

TEST(Pool, StartsAndEndsWithoutWork) {
  for (int i = 0; i < 50; ++i) Pool pool({.threads = 1 + i % 4});
}

TEST(Pool, HasAsManyThreadsAsTheShareByDefault) { EXPECT_EQ(Pool().threads(), cpu_share().threads); }

TEST(Pool, UsesNoCpuBetweenSteps) {
  Pool pool({.threads = 3});
  pool.run([](int, int) {});
  let_pass(std::chrono::milliseconds(2));
  // The one sleep in these tests: CPU time is what is measured, so this thread must use none.
  const double before = cpu_seconds();
  timespec rest{.tv_sec = 0, .tv_nsec = 100'000'000};
  nanosleep(&rest, nullptr);
  EXPECT_LT(cpu_seconds() - before, 0.02);
}

TEST(Pool, PinsToDistinctProcessorsUnlessToldNot) {
  const CpuShare share = cpu_share();
  const int n = static_cast<int>(share.cpus.size());
  std::vector<int> allowed(static_cast<std::size_t>(n));
  std::vector<int> at(static_cast<std::size_t>(n), -1);
  const auto look = [&](int thread, int) {
    allowed[static_cast<std::size_t>(thread)] = allowed_here();
    at[static_cast<std::size_t>(thread)] = sched_getcpu();
  };
  {
    Pool pool({.threads = n});
    pool.adopt_caller();
    pool.run(look);
    pool.release_caller();
    EXPECT_EQ(allowed, std::vector<int>(static_cast<std::size_t>(n), 1));
    std::sort(at.begin(), at.end());
    EXPECT_EQ(std::unique(at.begin(), at.end()), at.end());
    EXPECT_EQ(allowed_here(), n);
  }
  for (const PoolOptions options : {PoolOptions{.threads = n, .pin = false}, PoolOptions{.threads = n + 1}}) {
    Pool pool(options);
    pool.adopt_caller();
    allowed.resize(static_cast<std::size_t>(pool.threads()));
    at.resize(allowed.size());
    pool.run(look);
    EXPECT_EQ(allowed, std::vector<int>(allowed.size(), n));
  }
}

TEST(Pool, GoesRoundBetweenCallersByStep) {
  Pool pool({.threads = 2});
  std::int64_t counted = 0;  // guarded by the step
  const auto engine = [&] {
    for (int i = 0; i < 200; ++i) {
      pool.begin_step();
      const std::int64_t before = counted;
      for (int j = 0; j < 3; ++j) {
        pool.run([&](int thread, int) {
          if (thread == 1) ++counted;
        });
      }
      EXPECT_EQ(counted, before + 3);
      pool.end_step();
    }
  };
  std::thread other(engine);
  engine();
  other.join();
  EXPECT_EQ(counted, 1200);
}

TEST(PoolDeathTest, StepsDoNotNest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Pool pool({.threads = 1});
        pool.begin_step();
        pool.begin_step();
      },
      "CHECK");
  EXPECT_DEATH(
      {
        Pool pool({.threads = 1});
        pool.run([&](int, int) { pool.run([](int, int) {}); });
      },
      "CHECK");
  EXPECT_DEATH(Pool({.threads = 1}).end_step(), "CHECK");
}

TEST(WorkQueue, DealsEveryItemOnce) {
  Pool pool({.threads = 3});
  WorkQueue queue;
  for (const std::int64_t count : {0, 1, 2, 7, 1000}) {
    for (const std::int64_t chunk : {1, 3, 2000}) {
      std::vector<int> seen(static_cast<std::size_t>(count));
      queue.reset(count, chunk);
      pool.run([&](int, int) {
        std::int64_t begin = 0;
        std::int64_t end = 0;
        while (queue.take(begin, end)) {
          ASSERT_LE(end - begin, chunk);
          for (; begin < end; ++begin) ++seen[static_cast<std::size_t>(begin)];
        }
      });
      EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(count), 1)) << count << " by " << chunk;
    }
  }
}

TEST(ShareOf, SharesAreAdjacentWholeAndEven) {
  for (const std::int64_t count : {0, 1, 5, 16, 17, 100, 1537}) {
    for (const std::int64_t unit : {1, 16}) {
      for (int threads = 1; threads <= 5; ++threads) {
        std::int64_t at = 0;
        for (int thread = 0; thread < threads; ++thread) {
          const Share share = share_of(count, thread, threads, unit);
          EXPECT_EQ(share.begin, at);
          EXPECT_TRUE(share.begin % unit == 0 || share.begin == count);
          EXPECT_LE(share.end - share.begin, ((count + unit - 1) / unit / threads + 1) * unit);
          at = share.end;
        }
        EXPECT_EQ(at, count);
      }
    }
  }
}

}  // namespace
}  // namespace linnet::cpu
