#include "server/model_loader.h"

#include <utility>
#include <vector>

namespace linnet {

ModelLoader::ModelLoader(ModelSet& models, std::optional<std::chrono::seconds> idle_time)
    : models_(models), idle_time_(idle_time), thread_([this] { run(); }) {}

ModelLoader::~ModelLoader() {
  stopping_ = true;
  doorbell_.ring();
  thread_.join();
  for (const Change& change : changes_) {
    change.done(
        Error{ErrorCode::kUnavailable, "the server stopped before the model was loaded; send the request again later", ""});
  }
}

void ModelLoader::ask(Change change) {
  {
    const std::lock_guard lock(mutex_);
    changes_.push_back(std::move(change));
  }
  doorbell_.ring();
}

std::optional<ModelLoader::Change> ModelLoader::next() {
  const std::lock_guard lock(mutex_);
  if (changes_.empty()) return std::nullopt;
  Change change = std::move(changes_.front());
  changes_.pop_front();
  return change;
}

// Who asked for the same meanwhile.
void ModelLoader::tell_others(const Change& made, const Status& status) {
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    std::deque<Change> others;
    for (Change& change : changes_) {
      if (change.model == made.model && change.loads == made.loads) {
        waiting.push_back(std::move(change.done));
      } else {
        others.push_back(std::move(change));
      }
    }
    changes_ = std::move(others);
  }
  for (const Done& done : waiting) done(status);
}

void ModelLoader::run() {
  while (!stopping_) {
    if (const std::optional<Change> change = next()) {
      const Status status = change->loads ? models_.load(change->model) : models_.unload(change->model);
      change->done(status);
      tell_others(*change, status);
    } else if (idle_time_) {
      doorbell_.wait_for(*idle_time_);
      models_.unload_idle();
    } else {
      doorbell_.wait();
    }
  }
}

}  // namespace linnet
