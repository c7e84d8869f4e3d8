#include "hub/partial_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

namespace linnet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSha256Digits = 64;

Checksum checksum_for(const HubFile& wanted) {
  return wanted.hash.size() == kSha256Digits ? Checksum::sha256() : Checksum::git_blob(wanted.bytes);
}

}  // namespace

PartialFile::PartialFile(fs::path path, HubFile wanted, int descriptor)
    : path_(std::move(path)), wanted_(std::move(wanted)), descriptor_(descriptor), checksum_(checksum_for(wanted_)) {}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)),
      wanted_(std::move(other.wanted_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      checksum_(std::move(other.checksum_)) {}

PartialFile::~PartialFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Error PartialFile::trouble(const char* what) const {
  if (errno == ENOSPC || errno == EDQUOT) {
    return {ErrorCode::kIo,
            "the disk is full: " + path_.parent_path().string() + " took " + std::to_string(size_) + " of " +
                std::to_string(wanted_.bytes) + " bytes of " + wanted_.path +
                "; free some and run the command again (what has come is kept), or set HF_HOME to a folder on another disk",
            "HF_HOME"};
  }
  return {ErrorCode::kIo, std::string("cannot ") + what + " " + path_.string() + ": " + std::strerror(errno), path_.string()};
}

Result<PartialFile> PartialFile::open(const fs::path& path, const HubFile& wanted) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  PartialFile file(path, wanted, descriptor);
  if (descriptor < 0) return file.trouble("open");
  const off_t left = ::lseek(descriptor, 0, SEEK_END);
  if (left < 0) return file.trouble("read");
  if (static_cast<std::uint64_t>(left) > wanted.bytes) {
    LINNET_RETURN_IF_ERROR(file.restart());
  } else if (left > 0) {
    LINNET_RETURN_IF_ERROR(add_file(path, file.checksum_));
    file.size_ = static_cast<std::uint64_t>(left);
  }
  return file;
}

Status PartialFile::restart() {
  if (size_ == 0 && ::lseek(descriptor_, 0, SEEK_CUR) == 0) return {};
  if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0) return trouble("empty");
  size_ = 0;
  checksum_ = checksum_for(wanted_);
  return {};
}

Status PartialFile::add(std::string_view bytes) {
  if (bytes.size() > wanted_.bytes - size_) {
    return Error{ErrorCode::kCorrupt,
                 "the hub sends more than the " + std::to_string(wanted_.bytes) + " bytes that it says " + wanted_.path +
                     " has; run the command again, and if that does not help tell whoever keeps the repository",
                 wanted_.path};
  }
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return trouble("write");
    const auto written = static_cast<std::size_t>(count);
    checksum_.add(bytes.substr(0, written));
    size_ += written;
    bytes.remove_prefix(written);
  }
  return {};
}

Status PartialFile::finish(const fs::path& target) {
  if (size_ != wanted_.bytes) {
    return Error{ErrorCode::kCorrupt,
                 wanted_.path + " ended after " + std::to_string(size_) + " of " + std::to_string(wanted_.bytes) +
                     " bytes; run the command again, what has come is kept",
                 wanted_.path};
  }
  const std::string digest = checksum_.finish();
  std::error_code failed;
  if (digest != wanted_.hash) {
    fs::remove(path_, failed);
    return Error{
        ErrorCode::kCorrupt,
        wanted_.path + " has the checksum " + digest + " instead of " + wanted_.hash +
            ": it was damaged on its way or is not what was published, and was removed; run the command again, and if it "
            "stays so do not trust this hub (HF_ENDPOINT)",
        wanted_.path};
  }
  // Before the name says that it is all there.
  if (::fsync(descriptor_) != 0) return trouble("write");
  fs::rename(path_, target, failed);
  if (failed)
    return Error{ErrorCode::kIo, "cannot move " + path_.string() + " to " + target.string() + ": " + failed.message(),
                 target.string()};
  return {};
}

}  // namespace linnet
