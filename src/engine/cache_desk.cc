#include "engine/cache_desk.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

namespace linnet {
namespace {

CacheEntry shown(const PrefixEntry& entry, std::uint64_t block_bytes, Clock::Duration now) {
  return {.id = entry.id,
          .name_space = std::hash<std::string>{}(entry.name_space),
          .tokens = entry.tokens,
          .bytes = static_cast<std::uint64_t>(entry.blocks) * block_bytes,
          .own_bytes = static_cast<std::uint64_t>(entry.own_blocks) * block_bytes,
          .hits = entry.hits,
          .idle_s = std::chrono::duration<double>(now - entry.last_use).count()};
}

}  // namespace

void CacheDesk::ask(CacheQuestion question, CacheAnswer answer) {
  bool closed = false;
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    if (!closed) asked_.push_back({.question = question, .answer = std::move(answer)});
  }
  if (closed) return answer({});
  engine_->ring();
}

std::vector<CacheDesk::Asked> CacheDesk::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(asked_, {});
}

void CacheDesk::serve(PrefixTree& cache, std::uint64_t block_bytes, Clock::Duration now) {
  for (Asked& asked : take()) {
    std::vector<CacheEntry> found;
    for (const PrefixEntry& entry : cache.entries()) {
      if (!asked.question.id || *asked.question.id == entry.id) found.push_back(shown(entry, block_bytes, now));
    }
    if (asked.question.forget && asked.question.id) cache.remove(*asked.question.id);
    if (asked.question.forget && !asked.question.id) cache.clear();
    asked.answer(std::move(found));
  }
}

void CacheDesk::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  for (Asked& asked : take()) asked.answer({});
}

}  // namespace linnet
