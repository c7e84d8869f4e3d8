// The engine in tokens: many requests over one model, each answered as if it were alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "linnet/event.h"
#include "linnet/options.h"
#include "linnet/request.h"
#include "linnet/stats.h"
#include "linnet/status.h"

namespace linnet {

class Clock;     // src/base/clock.h
class Executor;  // src/engine/executor.h
class Outbox;    // src/engine/outbox.h

// The consumer's end of one sequence. Move-only; destroying it before the final event cancels the sequence.
// All methods may be called from one consumer thread, which need not be the engine's.
class RequestHandle {
 public:
  RequestHandle() = default;
  explicit RequestHandle(std::shared_ptr<Outbox> outbox);
  RequestHandle(RequestHandle&&) noexcept = default;
  RequestHandle& operator=(RequestHandle&& other) noexcept;
  ~RequestHandle();

  RequestId id() const;
  // Tokens of the prompt whose KV was there already. Known from the first event on; 0 before.
  std::int32_t cached_tokens() const;
  // The next event if there is one. After the FinishEvent: always empty.
  std::optional<Event> try_next();
  // Waits for the next event. Must not be called after the FinishEvent, nor on the thread that calls Engine::step().
  Event next();
  // `ready` is called from the engine's thread whenever try_next() may have something new, and once at registration if it has
  // already. It must return at once (post to an event loop). Replaces an earlier one; empty: none.
  void on_ready(std::function<void()> ready);
  // The row stops at the next step boundary; the final event then has reason kCancelled. Idempotent.
  void cancel();
  // The consumer has all it wants: as cancel(), but with reason kStop. Of the two the first call counts.
  void stop();

 private:
  std::shared_ptr<Outbox> outbox_;
};

// About an engine's prompt cache: which entries there are, or the one of that id; and whether they are to be forgotten.
struct CacheQuestion {
  std::optional<std::uint64_t> id;
  bool forget = false;
};
// The entries that were asked for, as they were before anything was forgotten; none after Engine::stop(). Called from the
// engine's thread, between steps (after stop(): by ask_cache itself); it must return at once.
using CacheAnswer = std::function<void(std::vector<CacheEntry>)>;

// Threads: submit() and the const methods may be called from any thread. Either start() gives the engine a thread of its own, or
// the owner calls step() from one thread (simulation, embedding); never both.
class Engine {
 public:
  Engine(const EngineOptions& options, std::unique_ptr<Executor> executor, Clock& clock);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();  // stops; every open request ends with kUnavailable

  // Errors: kInvalidArgument (empty prompt, token outside the vocabulary, parameter out of range), kContextLengthExceeded,
  // kQueueFull, kUnavailable after stop().
  Result<RequestHandle> submit(Request request);  // one sequence
  // Request::choices sequences over one prompt, which is computed once; a handle for each. The first is what submit() would give.
  Result<std::vector<RequestHandle>> submit_choices(Request request);

  // One turn of the loop: admit, plan, run, commit, emit. False if there was nothing to run.
  bool step();

  void start();  // runs step() on a thread of its own, asleep while there is nothing to do
  void stop();   // finishes the step under way; idempotent

  void ask_cache(CacheQuestion question, CacheAnswer answer);  // from any thread

  EngineStats stats() const;
  std::vector<StepRecord> recent_steps() const;                  // the last kStepRecordsMax, in order
  std::optional<RequestTrace> trace(std::string_view id) const;  // by Request::trace_id, of the last kTracesMax traced ones

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace linnet
