#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace linnet {

Result<FileLock> FileLock::acquire(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return Error{ErrorCode::kIo, "cannot open " + path.string() + ": " + std::strerror(errno), path.string()};
  while (::flock(descriptor, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    const int reason = errno;
    ::close(descriptor);
    return Error{ErrorCode::kIo, "cannot lock " + path.string() + ": " + std::strerror(reason), path.string()};
  }
  return FileLock(descriptor);
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace linnet
