#include "hub/hub_cache.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <system_error>

namespace linnet {
namespace {

namespace fs = std::filesystem;

Error trouble(const std::string& what, const fs::path& path, const std::error_code& failed) {
  return {ErrorCode::kIo, "cannot " + what + " " + path.string() + ": " + failed.message(), path.string()};
}

Status make_folders(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) return trouble("make", path, failed);
  return {};
}

// A name beside `path` that no other process uses.
fs::path name_beside(const fs::path& path) {
  return path.parent_path() / ("." + path.filename().string() + "." + std::to_string(::getpid()));
}

Status move_into_place(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::rename(from, to, failed);
  if (!failed) return {};
  const Error error = trouble("write", to, failed);
  fs::remove(from, failed);
  return error;
}

}  // namespace

Result<HubCache> HubCache::open(const fs::path& cache, std::string_view repository) {
  std::string name = "models--" + std::string(repository);
  name.replace(name.find('/'), 1, "--");
  HubCache opened(cache / name, cache / ".locks" / name);
  LINNET_RETURN_IF_ERROR(make_folders(opened.folder_ / "blobs"));
  LINNET_RETURN_IF_ERROR(make_folders(opened.folder_ / "snapshots"));
  LINNET_RETURN_IF_ERROR(make_folders(opened.locks_));
  return opened;
}

bool HubCache::has(const HubFile& file) const {
  std::error_code failed;
  const std::uint64_t bytes = fs::file_size(blob(file), failed);
  return !failed && bytes == file.bytes;
}

std::uint64_t HubCache::missing_bytes(const HubFile& file) const {
  if (has(file)) return 0;
  std::error_code failed;
  const std::uint64_t partly = fs::file_size(partial(file), failed);
  return failed || partly > file.bytes ? file.bytes : file.bytes - partly;
}

Status HubCache::link(const HubFile& file, std::string_view commit) const {
  const fs::path name = snapshot(commit) / file.path;
  fs::path target = "../..";  // from snapshots/COMMIT
  for (auto parts = std::count(file.path.begin(), file.path.end(), '/'); parts > 0; --parts) target = ".." / target;
  target = target / "blobs" / file.hash;
  std::error_code failed;
  if (fs::read_symlink(name, failed) == target) return {};
  LINNET_RETURN_IF_ERROR(make_folders(name.parent_path()));
  const fs::path fresh = name_beside(name);
  fs::remove(fresh, failed);
  fs::create_symlink(target, fresh, failed);
  if (failed) return trouble("link", fresh, failed);
  return move_into_place(fresh, name);
}

Status HubCache::remember(std::string_view revision, std::string_view commit) const {
  if (revision == commit) return {};
  const fs::path name = folder_ / "refs" / revision;
  LINNET_RETURN_IF_ERROR(make_folders(name.parent_path()));
  const fs::path fresh = name_beside(name);
  std::ofstream file(fresh, std::ios::binary);
  file << commit;
  file.close();
  if (!file) return Error{ErrorCode::kIo, "cannot write " + fresh.string(), fresh.string()};
  return move_into_place(fresh, name);
}

}  // namespace linnet
