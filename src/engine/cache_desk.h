// Where other threads ask about the prompt cache, and the engine's thread answers.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/doorbell.h"
#include "cache/prefix_tree.h"
#include "linnet/engine.h"

namespace linnet {

// Thread-safe but for serve(). Every question is answered exactly once: by serve(), or at once after close().
class CacheDesk {
 public:
  explicit CacheDesk(std::shared_ptr<Doorbell> engine) : engine_(std::move(engine)) {}

  void ask(CacheQuestion question, CacheAnswer answer);
  // Engine's thread, between steps. `block_bytes`: of a KV block.
  void serve(PrefixTree& cache, std::uint64_t block_bytes, Clock::Duration now);
  // Answers what is left, and from now on, with nothing.
  void close();

 private:
  struct Asked {
    CacheQuestion question;
    CacheAnswer answer;
  };
  std::vector<Asked> take();

  const std::shared_ptr<Doorbell> engine_;
  std::mutex mutex_;
  std::vector<Asked> asked_;
  bool closed_ = false;
};

}  // namespace linnet
