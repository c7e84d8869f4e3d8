// A file mapped read-only: the bytes of model files.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "linnet/status.h"

namespace linnet {

// Owns the mapping; move-only. Thread-safe to read.
class MappedFile {
 public:
  // Errors: kNotFound, kIo (with the system's reason); an empty or irregular file is kCorrupt.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes);
  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace linnet
