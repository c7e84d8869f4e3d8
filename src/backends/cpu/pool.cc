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
  seats_ = std::make_unique<Seat[]>(count);
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
  const std::uint32_t ticket = step_tickets_.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t turn = step_turn_.load(std::memory_order_acquire); turn != ticket;
       turn = step_turn_.load(std::memory_order_acquire)) {
    step_turn_.wait(turn, std::memory_order_relaxed);
  }
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
  step_turn_.fetch_add(1, std::memory_order_release);
  step_turn_.notify_all();
}

void Pool::run_task(const Task& task) {
  const bool own_step = in_own_step();
  if (!own_step) begin_step();
  CHECK(task_.entry == nullptr);  // not from within a task
  task_ = task;
  if (threads_ > 1) {
    const std::uint32_t signal = ((signal_.load(std::memory_order_relaxed) & ~kTask) + 2) | kTask;
    raise(signal);
    task.entry(task.context, 0, threads_);
    await_helpers(signal, task.wait);
  } else {
    task.entry(task.context, 0, 1);
  }
  task_ = {};
  if (!own_step) end_step();
}

void Pool::deal_task(const Task& task, std::int64_t count) {
  const bool own_step = in_own_step();
  if (!own_step) begin_step();
  CHECK(task_.entry == nullptr);  // not from within a task
  pieces_.reset(count);
  if (count > 1) {
    run_task(task);
  } else if (count == 1) {  // nothing to share: the others need not know
    task_ = task;
    task.entry(task.context, 0, threads_);
    task_ = {};
  }
  if (!own_step) end_step();
}

// Either the helper sees the new signal before it sleeps, or its count among the sleepers is seen here: both orders are
// sequentially consistent.
void Pool::raise(std::uint32_t signal) {
  signal_.exchange(signal);
  if (sleepers_.load() > 0) signal_.notify_all();
}

void Pool::await_helpers(std::uint32_t signal, Wait wait) {
  const SystemClock clock;
  SystemClock::Duration give_way{};
  for (int i = 1; i < threads_; ++i) {
    std::atomic<std::uint64_t>& seat = seats_[static_cast<std::size_t>(i)].state;
    std::uint64_t state = seat.load(std::memory_order_acquire);
    for (int pauses = 1; state != Seat::of(signal, Seat::kDone); ++pauses) {
      if (wait == Wait::kForThoseInside && state != Seat::of(signal, Seat::kInside)) {
        if (seat.compare_exchange_strong(state, Seat::of(signal, Seat::kClosed), std::memory_order_acq_rel)) break;
        continue;
      }
      pause();
      if (pauses % kPausesPerLook == 0) {
        // A helper may wait for this very processor.
        if (give_way == SystemClock::Duration{}) give_way = clock.now() + (crowded_ ? SystemClock::Duration{} : kSpin);
        if (clock.now() >= give_way) std::this_thread::yield();
      }
      state = seat.load(std::memory_order_acquire);
    }
  }
}

void Pool::help(int thread) {
  if (!cpus_.empty()) pin_this_thread({cpus_[static_cast<std::size_t>(thread)]});
  flush_subnormals();
  Seat& seat = seats_[static_cast<std::size_t>(thread)];
  std::uint32_t seen = 0;
  for (;;) {
    seen = await_signal(seen);
    if ((seen & kTask) != 0) {
      if (!enter(seat, seen)) continue;
      task_.entry(task_.context, thread, threads_);
      seat.state.store(Seat::of(seen, Seat::kDone), std::memory_order_release);
    } else if (stopping_.load()) {
      return;
    }
  }
}

// False if the caller has closed this task. Signals are compared by their distance, since they wrap around.
bool Pool::enter(Seat& seat, std::uint32_t signal) {
  std::uint64_t state = seat.state.load(std::memory_order_acquire);
  const auto ahead = static_cast<std::int32_t>(signal - static_cast<std::uint32_t>(state / 4));
  return ahead > 0 && seat.state.compare_exchange_strong(state, Seat::of(signal, Seat::kInside), std::memory_order_acq_rel);
}

// The signal that differs from `seen`. Signals may be passed over, but for tasks that wait for all: those wait until every
// helper is done.
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
