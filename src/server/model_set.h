// The models of a process: which are loaded, when one is, and when it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "linnet/status.h"
#include "linnet/text_engine.h"

namespace linnet {

class ModelSet;

enum class ModelUse : std::uint8_t {
  kRequest,  // keeps it from being idle
  kLook,
};

// Keeps a model loaded as long as it lives. Move-only.
class ModelLease {
 public:
  ModelLease(ModelLease&& other) noexcept;
  ModelLease& operator=(ModelLease&& other) noexcept;
  ~ModelLease();

  TextEngine* operator->() const { return engine_; }
  TextEngine& operator*() const { return *engine_; }

 private:
  friend class ModelSet;
  ModelLease(ModelSet& set, std::size_t index, TextEngine& engine, ModelUse use)
      : set_(&set), index_(index), engine_(&engine), use_(use) {}
  ModelSet* set_;
  std::size_t index_;
  TextEngine* engine_;
  ModelUse use_;
};

// A model that can be loaded.
struct ModelEntry {
  std::string id;
  std::vector<std::string> aliases{};
  std::uint64_t least_bytes = 0;  // without which it cannot be loaded
  bool pinned = false;            // once loaded, it goes only if it is told to
  // `budget`: bytes that it may take.
  std::function<Result<std::unique_ptr<TextEngine>>(std::uint64_t budget)> load;
};

struct ModelSetOptions {
  std::uint64_t memory_budget = 0;                // bytes, of all models together
  std::optional<std::chrono::seconds> idle_time;  // after which a model that nobody uses goes; absent: never
};

struct ModelInfo {
  bool loaded = false;
  ModelCard card{};  // of the last time that it was loaded; only its id before the first
};

// Rules:
//  1. A lone model is served whatever name it is asked for by; of several, one is asked for by its id or an alias.
//  2. A load that fails leaves nothing behind: the next one tries anew.
//  3. Each model may take an equal share of the budget, or more if it cannot be loaded with that, but no more than is left.
//  4. To make room, models go that nobody holds a lease of and that are not pinned: the one that was used longest ago first.
//  5. unload_idle() lets those go that nobody has held a lease of for idle_time.
// Threads: add() before all else; load(), unload() and unload_idle() from one thread at a time (ModelLoader's); the rest from
// any. Outlives its leases.
class ModelSet {
 public:
  ModelSet(const ModelSetOptions& options, const Clock& clock) : options_(options), clock_(clock) {}
  ModelSet(const ModelSet&) = delete;
  ModelSet& operator=(const ModelSet&) = delete;
  ~ModelSet() = default;

  void add(ModelEntry entry);
  // One that is there already, and stays.
  void add_loaded(std::unique_ptr<TextEngine> engine);

  // Which model a request means by `name`. Error: kNotFound, naming the models there are.
  Result<std::size_t> model_for(std::string_view name) const;
  // The same, but a lone model too goes by its own id or an alias alone.
  Result<std::size_t> exact_model(std::string_view name) const;
  std::size_t size() const { return models_.size(); }
  ModelInfo info(std::size_t index) const;

  // Empty if it is not loaded.
  std::optional<ModelLease> acquire(std::size_t index);
  // Leases of all that are loaded, to look at them: none counts as a use.
  std::vector<ModelLease> loaded();
  // Ends all requests; the engines stay.
  void stop();

  // Nothing to do if it is loaded. Errors: kUnavailable (no room now), kTooLarge (no room ever), those of ModelEntry::load.
  Status load(std::size_t index);
  // Nothing to do if it is not. Error: kUnavailable while it is in use.
  Status unload(std::size_t index);
  void unload_idle();

 private:
  friend class ModelLease;
  struct Model {
    ModelEntry entry;
    std::unique_ptr<TextEngine> engine;
    ModelCard card;
    std::uint64_t granted = 0;  // bytes; 0 while it is not loaded
    std::int32_t leases = 0;
    Clock::Duration last_used{};
  };

  using Engines = std::vector<std::unique_ptr<TextEngine>>;

  ModelLease lease(std::size_t index, ModelUse use);
  void release(std::size_t index, ModelUse use);
  bool is_idle(const Model& model) const { return model.engine && model.leases == 0 && !model.entry.pinned; }
  // With mutex_ held.
  std::uint64_t left() const;
  Result<std::vector<std::size_t>> victims_for(std::size_t index) const;
  Engines take_out(std::span<const std::size_t> victims);
  // Without mutex_: ends engines that were taken out; only then is their memory free.
  void end(Engines going, std::span<const std::size_t> victims);

  const ModelSetOptions options_;
  const Clock& clock_;
  std::vector<Model> models_;  // in the order of add(); entries do not change
  mutable std::mutex mutex_;   // guards the rest of each
};

}  // namespace linnet
