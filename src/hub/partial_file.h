// A file on its way: what has come so far, and its checksum.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "hub/checksum.h"
#include "hub/hub_listing.h"
#include "linnet/status.h"

namespace linnet {

// Move-only; one thread; only for who holds the file's lock. The file outlives the object, so that another run goes on with it.
//   1. size() bytes are in the file and in the checksum.
//   2. size() <= the wanted size.
class PartialFile {
 public:
  // Opens or makes it, and reads what a former run left, which was perhaps something else: finish() tells. Error: kIo.
  static Result<PartialFile> open(const std::filesystem::path& path, const HubFile& wanted);
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  std::uint64_t size() const { return size_; }
  Status restart();  // from nothing. Error: kIo
  // Errors: kCorrupt for more bytes than wanted; kIo, a full disk with what to do.
  Status add(std::string_view bytes);
  // Checks size and checksum, and moves the file to `target` in one step: it is there whole and right or not at all. If the
  // checksum is wrong the file is removed. Errors: kCorrupt, kIo.
  Status finish(const std::filesystem::path& target);

 private:
  PartialFile(std::filesystem::path path, HubFile wanted, int descriptor);
  Error trouble(const char* what) const;

  std::filesystem::path path_;
  HubFile wanted_;
  int descriptor_;
  std::uint64_t size_ = 0;
  Checksum checksum_;
};

}  // namespace linnet
