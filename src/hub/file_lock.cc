#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/check.h"

namespace linnet {

// Who held it may have removed the file, as some tools do: a lock on a file without a name holds nobody off, so the new one is
// taken.
Result<std::optional<FileLock>> FileLock::lock(const std::filesystem::path& path, int how) {
  const auto trouble = [&path](const char* what) {
    return Error{ErrorCode::kIo, std::string("cannot ") + what + " " + path.string() + ": " + std::strerror(errno),
                 path.string()};
  };
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) return trouble("open");
    FileLock opened(descriptor);
    int failed = 0;
    while ((failed = ::flock(descriptor, how)) != 0 && errno == EINTR) continue;
    if (failed != 0 && errno == EWOULDBLOCK) return std::optional<FileLock>();
    struct stat about {};
    if (failed != 0 || ::fstat(descriptor, &about) != 0) return trouble("lock");
    if (about.st_nlink > 0) return std::optional<FileLock>(std::move(opened));
  }
}

Result<std::optional<FileLock>> FileLock::try_acquire(const std::filesystem::path& path) { return lock(path, LOCK_EX | LOCK_NB); }

Result<FileLock> FileLock::acquire(const std::filesystem::path& path, const std::function<void()>& waiting) {
  LINNET_ASSIGN(std::optional<FileLock> free, try_acquire(path));
  if (free) return std::move(*free);
  if (waiting) waiting();
  LINNET_ASSIGN(std::optional<FileLock> waited, lock(path, LOCK_EX));
  CHECK(waited.has_value());
  return std::move(*waited);
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace linnet
