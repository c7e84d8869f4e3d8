// A lock between processes, held as long as the object lives.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "linnet/status.h"

namespace linnet {

// Move-only. The system drops the lock if the process dies; the file stays.
class FileLock {
 public:
  // Waits for whoever holds it, having called `waiting` once if that is needed and there is one. Error: kIo.
  static Result<FileLock> acquire(const std::filesystem::path& path, const std::function<void()>& waiting = {});
  // Nothing if another holds it. Error: kIo.
  static Result<std::optional<FileLock>> try_acquire(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  static Result<std::optional<FileLock>> lock(const std::filesystem::path& path, int how);
  int descriptor_;
};

}  // namespace linnet
