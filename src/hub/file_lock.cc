#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace linnet {

Result<FileLock> FileLock::acquire(const std::filesystem::path& path, const std::function<void()>& waiting) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return Error{ErrorCode::kIo, "cannot open " + path.string() + ": " + std::strerror(errno), path.string()};
  FileLock lock(descriptor);
  int how = LOCK_EX | LOCK_NB;
  while (::flock(descriptor, how) != 0) {
    const int reason = errno;
    if (reason == EINTR) continue;
    if (reason != EWOULDBLOCK) {
      return Error{ErrorCode::kIo, "cannot lock " + path.string() + ": " + std::strerror(reason), path.string()};
    }
    if (waiting) waiting();
    how = LOCK_EX;
  }
  return lock;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace linnet
