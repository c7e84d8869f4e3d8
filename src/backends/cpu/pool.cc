#include "backends/cpu/pool.h"

#include <chrono>
#include <utility>

#include "backends/cpu/affinity.h"
#include "base/check.h"
#include "base/clock.h"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

namespace linnet::cpu {
namespace {

constexpr int kThreadsMax = 1024;
constexpr std::chrono::nanoseconds kSpin = std::chrono::milliseconds(1);
constexpr int kPausesPerLook = 64;  // between two looks at the clock: a few microseconds
constexpr std::uint32_t kTask = 1;  // lowest bit of the signal

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// FTZ and DAZ on; returns the mode before.
std::uint32_t flush_subnormals() {
#if defined(__x86_64__)
  const std::uint32_t before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040U);
  return before;
#else
  return 0;
#endif
}

void restore_float_mode([[maybe_unused]] std::uint32_t mode) {
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(mode);
#endif
}

// A refusal (the mask was narrowed meanwhile) is harmless: the thread runs where it may.
void pin_this_thread([[maybe_unused]] const std::vector<int>& cpus) {
#ifdef __linux__
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(static_cast<unsigned>(cpu), &mask);
  (void)pthread_setaffinity_np(pthread_self(), sizeof mask, &mask);
#endif
}

}  // namespace

Pool::Pool(PoolOptions options) {
  CHECK(options.threads >= 0 && options.threads <= kThreadsMax);
  CpuShare share = cpu_share();
  threads_ = options.threads > 0 ? options.threads : share.threads;
  const auto count = static_cast<std::size_t>(threads_);
  crowded_ = count > share.cpus.size();
  allowed_ = std::move(share.cpus);
  if (options.pin && !crowded_) cpus_.assign(allowed_.begin(), allowed_.begin() + threads_);
  done_ = std::make_unique<Done[]>(count);
  helpers_.reserve(count - 1);
  for (int i = 1; i < threads_; ++i) helpers_.emplace_back([this, i] { help(i); });
}

Pool::~Pool() {
  CHECK(!in_step_.load());
  stopping_.store(true);
  raise((signal_.load() & ~kTask) + 2);
  for (std::thread& helper : helpers_) helper.join();
}

void Pool::adopt_caller() {
  if (!cpus_.empty()) pin_this_thread({cpus_[0]});
}

void Pool::release_caller() {
  if (!cpus_.empty()) pin_this_thread(allowed_);
}

bool Pool::in_own_step() const { return step_owner_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

void Pool::begin_step() {
  CHECK(!in_own_step());
  step_mutex_.lock();
  step_owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  step_float_mode_ = flush_subnormals();
  in_step_.store(true);
  if (threads_ > 1) raise((signal_.load() & ~kTask) + 2);
}

void Pool::end_step() {
  CHECK(in_own_step());
  in_step_.store(false);
  restore_float_mode(step_float_mode_);
  step_owner_.store(std::thread::id(), std::memory_order_relaxed);
  step_mutex_.unlock();
}

void Pool::run_task(Entry entry, void* context) {
  const bool own_step = in_own_step();
  if (!own_step) begin_step();
  CHECK(entry_ == nullptr);  // not from within a task
  entry_ = entry;
  context_ = context;
  if (threads_ > 1) {
    const std::uint32_t signal = ((signal_.load(std::memory_order_relaxed) & ~kTask) + 2) | kTask;
    raise(signal);
    entry(context, 0, threads_);
    await_helpers(signal);
  } else {
    entry(context, 0, 1);
  }
  entry_ = nullptr;
  if (!own_step) end_step();
}

// Either the helper sees the new signal before it sleeps, or its count among the sleepers is seen here: both orders are
// sequentially consistent.
void Pool::raise(std::uint32_t signal) {
  signal_.exchange(signal);
  if (sleepers_.load() > 0) signal_.notify_all();
}

void Pool::await_helpers(std::uint32_t signal) {
  const SystemClock clock;
  SystemClock::Duration give_way{};
  for (int i = 1; i < threads_; ++i) {
    const std::atomic<std::uint32_t>& done = done_[static_cast<std::size_t>(i)].signal;
    for (int pauses = 1; done.load(std::memory_order_acquire) != signal; ++pauses) {
      pause();
      if (pauses % kPausesPerLook != 0) continue;
      // A helper may wait for this very processor.
      if (give_way == SystemClock::Duration{}) give_way = clock.now() + (crowded_ ? SystemClock::Duration{} : kSpin);
      if (clock.now() >= give_way) std::this_thread::yield();
    }
  }
}

void Pool::help(int thread) {
  if (!cpus_.empty()) pin_this_thread({cpus_[static_cast<std::size_t>(thread)]});
  flush_subnormals();
  std::atomic<std::uint32_t>& done = done_[static_cast<std::size_t>(thread)].signal;
  std::uint32_t seen = 0;
  for (;;) {
    seen = await_signal(seen);
    if ((seen & kTask) != 0) {
      entry_(context_, thread, threads_);
      done.store(seen, std::memory_order_release);
    } else if (stopping_.load()) {
      return;
    }
  }
}

// The signal that differs from `seen`. Signals without the task bit may be passed over, tasks can't: run_task() waits for `done`.
std::uint32_t Pool::await_signal(std::uint32_t seen) {
  const SystemClock clock;
  SystemClock::Duration until{};
  for (;;) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      const std::uint32_t signal = signal_.load(std::memory_order_acquire);
      if (signal != seen) return signal;
      pause();
    }
    const SystemClock::Duration now = clock.now();
    if (until == SystemClock::Duration{}) until = now + kSpin;
    if (in_step_.load(std::memory_order_relaxed) && now < until) {
      if (crowded_) std::this_thread::yield();
      continue;
    }
    sleepers_.fetch_add(1);
    signal_.wait(seen);
    sleepers_.fetch_sub(1);
    until = {};
  }
}

}  // namespace linnet::cpu
