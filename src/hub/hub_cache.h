// One repository's folder in the cache that Hugging Face's tools share:
//   models--ORG--NAME/blobs/HASH                     content; HASH.incomplete while it comes
//   models--ORG--NAME/snapshots/COMMIT/PATH          a relative link to its blob
//   models--ORG--NAME/refs/REVISION                  the commit that a branch or tag was last seen at
//   .locks/models--ORG--NAME/HASH.lock               held (flock) by who fetches that blob
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "hub/hub_listing.h"
#include "linnet/status.h"

namespace linnet {

class HubCache {
 public:
  // `repository`: org/name, as parse_hub_name() lets through. Makes the folders. Error: kIo.
  static Result<HubCache> open(const std::filesystem::path& cache, std::string_view repository);

  std::filesystem::path blob(const HubFile& file) const { return folder_ / "blobs" / file.hash; }
  std::filesystem::path partial(const HubFile& file) const { return folder_ / "blobs" / (file.hash + ".incomplete"); }
  std::filesystem::path lock(const HubFile& file) const { return locks_ / (file.hash + ".lock"); }
  std::filesystem::path snapshot(std::string_view commit) const { return folder_ / "snapshots" / commit; }

  // Whether the blob is there, by its size: it was verified when it came.
  bool has(const HubFile& file) const;
  // How much of it is still to come.
  std::uint64_t missing_bytes(const HubFile& file) const;
  // The file's name in the snapshot; again is fine. Error: kIo.
  Status link(const HubFile& file, std::string_view commit) const;
  // Remembers where a revision stands; nothing to remember for a commit. Error: kIo.
  Status remember(std::string_view revision, std::string_view commit) const;

 private:
  HubCache(std::filesystem::path folder, std::filesystem::path locks) : folder_(std::move(folder)), locks_(std::move(locks)) {}

  std::filesystem::path folder_;
  std::filesystem::path locks_;
};

}  // namespace linnet
