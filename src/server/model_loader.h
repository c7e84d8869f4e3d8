// The thread on which models come and go.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/doorbell.h"
#include "linnet/status.h"
#include "server/model_set.h"

namespace linnet {

// One change after another; whoever asks for a load that is under way or queued shares its outcome. Between changes it lets idle
// models go. Thread-safe.
class ModelLoader {
 public:
  using Done = std::function<void(Status)>;  // called once, from this thread; must return at once

  // `idle_time`: that of `models`, which outlives this.
  ModelLoader(ModelSet& models, std::optional<std::chrono::seconds> idle_time);
  ModelLoader(const ModelLoader&) = delete;
  ModelLoader& operator=(const ModelLoader&) = delete;
  // Waits for the change under way; those that wait for another one are told kUnavailable.
  ~ModelLoader();

  void load(std::size_t model, Done done) { ask({.model = model, .loads = true, .done = std::move(done)}); }
  void unload(std::size_t model, Done done) { ask({.model = model, .loads = false, .done = std::move(done)}); }

 private:
  struct Change {
    std::size_t model = 0;
    bool loads = true;
    Done done;
  };
  void ask(Change change);
  std::optional<Change> next();
  void tell_others(const Change& made, const Status& status);
  void run();

  ModelSet& models_;
  const std::optional<std::chrono::seconds> idle_time_;
  Doorbell doorbell_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // guards changes_
  std::deque<Change> changes_;
  std::thread thread_;
};

}  // namespace linnet
