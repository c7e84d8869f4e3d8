#include "hub/hub_model.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "hub/disk_space.h"
#include "hub/file_choice.h"
#include "hub/file_lock.h"
#include "hub/hub_cache.h"
#include "hub/hub_client.h"
#include "hub/hub_listing.h"
#include "hub/partial_file.h"
#include "hub/size_text.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kListingBytesMax = std::size_t{16} << 20;
constexpr std::chrono::milliseconds kLockWait{200};

// One model on its way. Borrows all of it.
struct Fetch {
  const HubName& name;
  const HubOptions& options;
  HubClient& client;
  const HubCache& cache;
  std::string commit;
  FetchProgress progress;
};

// Nothing: stopped while another process held it.
Result<FileLock> wait_for_lock(const fs::path& path, const HubFile& file, const HubOptions& options) {
  bool said = false;
  while (true) {
    LINNET_ASSIGN(std::optional<FileLock> lock, FileLock::try_acquire(path));
    if (lock) return std::move(*lock);
    if (!said && options.say) options.say("waiting: another process is fetching " + file.path);
    said = true;
    if (options.wait) options.wait(kLockWait);
    if (options.stop.stop_requested()) return fetch_interrupted();
  }
}

// What the hub says about the file it is about to send.
Status check_head(const HttpHead& head, const HubFile& file, std::uint64_t have) {
  if (head.etag.size() == file.hash.size() && head.etag != file.hash) {
    return Error{ErrorCode::kCorrupt,
                 "the hub lists " + file.path + " with the checksum " + file.hash + " and sends " + head.etag +
                     "; run the command again, and if it stays so do not trust this hub (HF_ENDPOINT)",
                 file.path};
  }
  if (head.status == 206 && (head.range_first != have || head.range_total.value_or(file.bytes) != file.bytes)) {
    return Error{ErrorCode::kCorrupt,
                 "the hub was asked for " + file.path + " from byte " + std::to_string(have) + " of " +
                     std::to_string(file.bytes) + " and sends another part; run the command again, and if it stays so remove " +
                     file.hash + ".incomplete",
                 file.path};
  }
  return {};
}

void tell(Fetch& fetch, std::uint64_t done) {
  fetch.progress.done = done;
  if (fetch.options.progress) fetch.options.progress(fetch.progress);
}

// Brings the rest of the file; its checksum is not looked at.
Status fetch_rest(Fetch& fetch, const HubFile& file, PartialFile& partial, std::uint64_t others) {
  if (partial.size() == file.bytes) return {};
  BodySink sink;
  sink.have = [&partial] { return partial.size(); };
  sink.begin = [&](const HttpHead& head) -> Status {
    LINNET_RETURN_IF_ERROR(check_head(head, file, partial.size()));
    if (head.status == 200) return partial.restart();  // all of it comes
    return {};
  };
  sink.add = [&](std::string_view bytes) -> Status {
    LINNET_RETURN_IF_ERROR(partial.add(bytes));
    tell(fetch, others + partial.size());
    return {};
  };
  return fetch.client.fetch("/" + fetch.name.repository + "/resolve/" + fetch.commit + "/" + percent_encoded_path(file.path),
                            {.repository = fetch.name.repository, .revision = fetch.name.revision, .file = file.path}, sink);
}

// `others`: bytes of other files that are there.
Status fetch_blob(Fetch& fetch, const HubFile& file, std::uint64_t others) {
  if (fetch.cache.has(file)) return {};  // the same content under another name
  LINNET_ASSIGN(const FileLock lock, wait_for_lock(fetch.cache.lock(file), file, fetch.options));
  if (fetch.cache.has(file)) return {};  // another process was faster
  const auto open = [&] { return PartialFile::open(fetch.cache.partial(file), file); };
  LINNET_ASSIGN(PartialFile partial, open());
  const bool resumed = partial.size() > 0;
  LINNET_RETURN_IF_ERROR(fetch_rest(fetch, file, partial, others));
  const Status finished = partial.finish(fetch.cache.blob(file));
  // What a former run left may have been bad, which says nothing about the hub: once more from nothing.
  if (finished.ok() || !resumed || finished.error().code != ErrorCode::kCorrupt) return finished;
  if (fetch.options.say) fetch.options.say("what was left of " + file.path + " is not right; fetching all of it");
  LINNET_ASSIGN(PartialFile fresh, open());
  LINNET_RETURN_IF_ERROR(fetch_rest(fetch, file, fresh, others));
  return fresh.finish(fetch.cache.blob(file));
}

Result<HubListing> fetch_listing(const HubName& name, HubClient& client) {
  const std::string path = "/api/models/" + name.repository + "/revision/" + percent_encoded_part(name.revision) + "?blobs=true";
  LINNET_ASSIGN(const std::string text,
                client.fetch_text(path, {.repository = name.repository, .revision = name.revision}, kListingBytesMax));
  return parse_hub_listing(text);
}

// A wanted file and how much of it a former run left.
struct Part {
  HubFile file;
  std::uint64_t had = 0;
};

// What is there and what is wanted. Saturating: sizes are a stranger's.
FetchProgress sum_of(const std::vector<Part>& parts) {
  FetchProgress sum;
  for (const Part& part : parts) {
    sum.done += std::min(part.had, UINT64_MAX - sum.done);
    sum.total += std::min(part.file.bytes, UINT64_MAX - sum.total);
  }
  return sum;
}

}  // namespace

Result<fs::path> fetch_hub_model(const HubName& name, const HubOptions& options) {
  HubClient client(options);
  LINNET_ASSIGN(const HubListing listing, fetch_listing(name, client));
  LINNET_ASSIGN(const std::vector<HubFile> files, choose_files(listing.files, name));
  LINNET_ASSIGN(const HubCache cache, HubCache::open(options.cache, name.repository));
  std::vector<Part> parts;
  for (const HubFile& file : files) parts.push_back({file, file.bytes - cache.missing_bytes(file)});
  Fetch fetch{name, options, client, cache, listing.commit, sum_of(parts)};
  const auto [done, total] = fetch.progress;
  LINNET_RETURN_IF_ERROR(check_disk_space(options.cache, total - done, "HF_HOME"));
  if (options.say) {
    const std::string what = done == total ? "is here" : "(" + size_text(total - done) + " of " + size_text(total) + " to fetch)";
    options.say(name.repository + " at " + listing.commit.substr(0, 12) + " " + what);
  }
  for (const Part& part : parts) {
    if (cache.has(part.file) && part.had == part.file.bytes) continue;
    const std::uint64_t others = fetch.progress.done - part.had;
    LINNET_RETURN_IF_ERROR(fetch_blob(fetch, part.file, others));
    tell(fetch, others + part.file.bytes);
  }
  for (const HubFile& file : files) LINNET_RETURN_IF_ERROR(cache.link(file, listing.commit));
  LINNET_RETURN_IF_ERROR(cache.remember(name.revision, listing.commit));
  const fs::path snapshot = cache.snapshot(listing.commit);
  return files.front().path.ends_with(".gguf") ? snapshot / files.front().path : snapshot;
}

}  // namespace linnet
