#include "server/model_set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/memory_budget.h"
#include "base/printable.h"

namespace linnet {
ModelLease::ModelLease(ModelLease&& other) noexcept
    : set_(std::exchange(other.set_, nullptr)), index_(other.index_), engine_(other.engine_), use_(other.use_) {}

ModelLease& ModelLease::operator=(ModelLease&& other) noexcept {
  std::swap(set_, other.set_);
  std::swap(index_, other.index_);
  std::swap(engine_, other.engine_);
  std::swap(use_, other.use_);
  return *this;
}

ModelLease::~ModelLease() {
  if (set_ != nullptr) set_->release(index_, use_);
}

void ModelSet::add(ModelEntry entry) {
  models_.push_back({.entry = std::move(entry)});
  models_.back().card.id = models_.back().entry.id;
}

void ModelSet::add_loaded(std::unique_ptr<TextEngine> engine) {
  const ModelCard& card = engine->model();
  models_.push_back({.entry = {.id = card.id, .pinned = true}, .card = card});
  models_.back().engine = std::move(engine);
}

Result<std::size_t> ModelSet::model_for(std::string_view name) const {
  if (models_.size() == 1) return std::size_t{0};
  return exact_model(name);
}

Result<std::size_t> ModelSet::exact_model(std::string_view name) const {
  std::string known;
  for (std::size_t index = 0; index < models_.size(); ++index) {
    const ModelEntry& entry = models_[index].entry;
    if (entry.id == name || std::find(entry.aliases.begin(), entry.aliases.end(), name) != entry.aliases.end()) return index;
    known += (known.empty() ? "" : ", ") + entry.id;
  }
  return Error{ErrorCode::kNotFound, "there is no model \"" + printable(name) + "\" here; there is " + known, "model"};
}

ModelInfo ModelSet::info(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  const Model& model = models_[index];
  return {.loaded = model.engine != nullptr, .card = model.card};
}

std::optional<ModelLease> ModelSet::acquire(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (models_[index].engine == nullptr) return std::nullopt;
  return lease(index, ModelUse::kRequest);
}

std::vector<ModelLease> ModelSet::loaded() {
  const std::lock_guard lock(mutex_);
  std::vector<ModelLease> leases;
  for (std::size_t index = 0; index < models_.size(); ++index) {
    if (models_[index].engine != nullptr) leases.push_back(lease(index, ModelUse::kLook));
  }
  return leases;
}

ModelLease ModelSet::lease(std::size_t index, ModelUse use) {
  Model& model = models_[index];
  ++model.leases;
  if (use == ModelUse::kRequest) model.last_used = clock_.now();
  return ModelLease(*this, index, *model.engine, use);
}

void ModelSet::release(std::size_t index, ModelUse use) {
  const std::lock_guard lock(mutex_);
  Model& model = models_[index];
  CHECK(model.leases > 0);
  --model.leases;
  if (use == ModelUse::kRequest) model.last_used = clock_.now();
}

void ModelSet::stop() {
  const std::lock_guard lock(mutex_);
  for (const Model& model : models_) {
    if (model.engine != nullptr) model.engine->stop();
  }
}

std::uint64_t ModelSet::left() const {
  std::uint64_t granted = 0;
  for (const Model& model : models_) granted += model.granted;
  CHECK(granted <= options_.memory_budget);
  return options_.memory_budget - granted;
}

Result<std::vector<std::size_t>> ModelSet::victims_for(std::size_t index) const {
  const ModelEntry& entry = models_[index].entry;
  const std::string needs = "the model " + entry.id + " takes at least " + format_bytes(entry.least_bytes) + ", and ";
  if (entry.least_bytes > options_.memory_budget) {
    return Error{
        ErrorCode::kTooLarge,
        needs + "the memory budget is " + format_bytes(options_.memory_budget) + "; raise --memory-budget or lower --context",
        "--memory-budget"};
  }
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (is_idle(models_[i])) idle.push_back(i);
  }
  std::sort(idle.begin(), idle.end(), [&](std::size_t a, std::size_t b) { return models_[a].last_used < models_[b].last_used; });
  std::uint64_t room = left();
  std::vector<std::size_t> victims;
  for (const std::size_t victim : idle) {
    if (room >= entry.least_bytes) break;
    room += models_[victim].granted;
    victims.push_back(victim);
  }
  if (room >= entry.least_bytes) return victims;
  return Error{
      ErrorCode::kUnavailable,
      needs + format_bytes(room) + " of the memory budget are free beside models that are in use or pinned; try again later",
      "model"};
}

Status ModelSet::load(std::size_t index) {
  Model& model = models_[index];
  std::vector<std::size_t> victims;
  Engines going;
  {
    const std::lock_guard lock(mutex_);
    if (model.engine != nullptr) return {};
    LINNET_ASSIGN(victims, victims_for(index));
    going = take_out(victims);
  }
  end(std::move(going), victims);
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t share = options_.memory_budget / models_.size();
    model.granted = std::min(std::max(share, model.entry.least_bytes), left());
  }
  log_info("loading " + model.entry.id);
  Result<std::unique_ptr<TextEngine>> engine = model.entry.load(model.granted);
  const std::lock_guard lock(mutex_);
  if (!engine.ok()) {
    model.granted = 0;
    return engine.error();
  }
  model.engine = *std::move(engine);
  model.card = model.engine->model();
  model.last_used = clock_.now();
  return {};
}

ModelSet::Engines ModelSet::take_out(std::span<const std::size_t> victims) {
  Engines going;
  for (const std::size_t victim : victims) going.push_back(std::move(models_[victim].engine));
  return going;
}

void ModelSet::end(Engines going, std::span<const std::size_t> victims) {
  going.clear();  // may take its time
  const std::lock_guard lock(mutex_);
  for (const std::size_t victim : victims) {
    models_[victim].granted = 0;
    log_info("unloaded " + models_[victim].entry.id);
  }
}

Status ModelSet::unload(std::size_t index) {
  Engines going;
  {
    const std::lock_guard lock(mutex_);
    const Model& model = models_[index];
    if (model.engine == nullptr) return {};
    if (model.leases > 0) {
      return Error{ErrorCode::kUnavailable,
                   "the model " + model.entry.id + " is in use by " + std::to_string(model.leases) + " requests; try again later",
                   "model"};
    }
    going = take_out(std::array{index});
  }
  end(std::move(going), std::array{index});
  return {};
}

void ModelSet::unload_idle() {
  if (!options_.idle_time) return;
  std::vector<std::size_t> victims;
  Engines going;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < models_.size(); ++i) {
      if (is_idle(models_[i]) && clock_.now() - models_[i].last_used >= *options_.idle_time) victims.push_back(i);
    }
    going = take_out(victims);
  }
  end(std::move(going), victims);
}

}  // namespace linnet
