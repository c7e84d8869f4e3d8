// The kernel threads: every kernel of a forward pass runs on all of them at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace linnet::cpu {

struct PoolOptions {
  int threads = 0;  // kernel threads, the caller's included; 0: cpu_share().threads
  bool pin = true;  // each thread to a processor of its own; without effect if there are more threads than processors
};

// Deals out 0 .. count - 1 to the threads of one run(), a chunk at a time, in ascending order. reset() before the run.
class WorkQueue {
 public:
  void reset(std::int64_t count, std::int64_t chunk = 1) {
    count_ = count;
    chunk_ = chunk;
    next_.store(0, std::memory_order_relaxed);
  }

  // False when nothing is left; else [begin, end) is the caller's.
  bool take(std::int64_t& begin, std::int64_t& end) {
    begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
    end = begin + chunk_ < count_ ? begin + chunk_ : count_;
    return begin < count_;
  }

 private:
  std::int64_t count_ = 0;
  std::int64_t chunk_ = 1;
  alignas(64) std::atomic<std::int64_t> next_{0};
};

// N kernel threads, of which thread 0 is whoever calls run() or deal(). Inside a step the others spin while they wait for work
// (about 1 ms, then they sleep); between steps they sleep and use no CPU.
// Threads: begin_step() .. end_step(), run() and deal() belong to one thread at a time; other callers of begin_step(), or of the
// others outside a step, wait for their turn, first come first served. So engines of several models share one pool, step by step.
// Invariants: 1. run() and deal() return after every thread that took part has returned from the task; what the tasks wrote is
// visible to the caller, and to all threads in the next task. 2. Nothing allocates after construction. 3. While a task runs,
// results and inputs of float arithmetic that are subnormal count as zero on every kernel thread (x86: FTZ and DAZ in MXCSR, as
// the matrix unit does anyway); the caller's own setting comes back with end_step().
class Pool {
 public:
  explicit Pool(PoolOptions options = {});
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();  // not inside a step

  int threads() const { return threads_; }

  // Pins the calling thread to thread 0's processor (if threads are pinned): for an engine's thread, once, before its first step.
  // Threads that it creates afterwards inherit that; release_caller() gives it all allowed processors back.
  void adopt_caller();
  void release_caller();

  void begin_step();  // wakes the helpers, so that they are there for the first run()
  void end_step();    // lets them sleep

  // task(thread, threads) on all threads, 0 being the caller. Not from within a task.
  template <class F>
  void run(F&& task) {
    using Callable = std::remove_reference_t<F>;
    run_task({[](void* context, int thread, int threads) { (*static_cast<Callable*>(context))(thread, threads); },
              const_cast<void*>(static_cast<const void*>(&task)), Wait::kForAll});
  }

  // task(thread, pieces) on the threads that are there, each of which takes what pieces.take() gives it of 0 .. count - 1. A
  // thread that has lost its processor to another process is not waited for, unless it has begun: so a step goes on without it.
  template <class F>
  void deal(std::int64_t count, F&& task) {
    const auto all = [&](int thread, int) { task(thread, pieces_); };
    using All = decltype(all);
    deal_task({[](void* context, int thread, int threads) { (*static_cast<All*>(context))(thread, threads); },
               const_cast<void*>(static_cast<const void*>(&all)), Wait::kForThoseInside},
              count);
  }

 private:
  using Entry = void (*)(void* context, int thread, int threads);
  enum class Wait : std::uint8_t { kForAll, kForThoseInside };
  struct Task {
    Entry entry = nullptr;
    void* context = nullptr;
    Wait wait = Wait::kForAll;
  };

  // What a helper makes of a task: it goes inside, then is done; or the caller closes the task before it came. Both go through
  // one exchange of `state`, so that only one of them happens: (the task's signal) * 4 + one of these.
  struct alignas(64) Seat {
    static constexpr std::uint64_t kInside = 1, kDone = 2, kClosed = 3;
    static constexpr std::uint64_t of(std::uint32_t signal, std::uint64_t phase) { return std::uint64_t{signal} * 4 + phase; }
    std::atomic<std::uint64_t> state{0};
  };

  void run_task(const Task& task);
  void deal_task(const Task& task, std::int64_t count);
  void help(int thread);
  bool enter(Seat& seat, std::uint32_t signal);
  std::uint32_t await_signal(std::uint32_t seen);
  void await_helpers(std::uint32_t signal, Wait wait);
  void raise(std::uint32_t signal);
  bool in_own_step() const;

  int threads_ = 1;
  bool crowded_ = false;   // more threads than processors: who waits gives way
  std::vector<int> cpus_;  // [threads] where each is pinned; empty: nowhere
  std::vector<int> allowed_;

  std::atomic<std::uint32_t> step_tickets_{0};  // drawn by callers of begin_step()
  std::atomic<std::uint32_t> step_turn_{0};     // whose step it is
  std::atomic<std::thread::id> step_owner_{};
  std::uint32_t step_float_mode_ = 0;  // the caller's, while in a step

  // What helpers watch: a count in the upper bits; the lowest bit says that there is a task (else: wake up, or stop).
  alignas(64) std::atomic<std::uint32_t> signal_{0};
  std::atomic<bool> in_step_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<int> sleepers_{0};
  Task task_;  // written before signal_ with the task bit, read after it by those inside
  WorkQueue pieces_;

  std::unique_ptr<Seat[]> seats_;  // [threads]
  std::vector<std::thread> helpers_;
};

// [begin, end) of `count` things for one of `threads`, in multiples of `unit` but for the last: a static share.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
constexpr Share share_of(std::int64_t count, int thread, int threads, std::int64_t unit = 1) {
  const std::int64_t units = (count + unit - 1) / unit;
  const std::int64_t begin = units * thread / threads * unit;
  const std::int64_t end = units * (thread + 1) / threads * unit;
  return {begin < count ? begin : count, end < count ? end : count};
}

}  // namespace linnet::cpu
